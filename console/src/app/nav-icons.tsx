/** The icons of the navigation at the bottom of a phone. */

import type { JSX } from "solid-js";

const PATHS = {
  sessions: "M4 6h16M4 12h16M4 18h10",
  inbox: "M4 13l3-8h10l3 8v6H4zM4 13h5l1.5 2.5h3L15 13h5",
  usage: "M5 20V11M12 20V4M19 20v-6",
  agents: "M5 8h14v11H5zM12 8V4M9 13v1.5M15 13v1.5",
  fleet: "M4 5h16v5H4zM4 14h16v5H4zM7.5 7.5h.01M7.5 16.5h.01",
  devices: "M3 5h13v9H3zM6 19h6M18 10h4v10h-4z",
};

export type NavIconName = keyof typeof PATHS;

export function NavIcon(props: { name: NavIconName }): JSX.Element {
  return (
    <svg class="nav-icon" viewBox="0 0 24 24" width="22" height="22" aria-hidden="true">
      <path d={PATHS[props.name]} />
    </svg>
  );
}
