/** The settings of this browser: theme and login. */

import { useNavigate } from "@solidjs/router";
import { createSignal, For, Show, type JSX } from "solid-js";
import { signOut } from "../../api/account";
import { errorText } from "../../api/client";
import { me, setMe } from "../../state/me";
import { chooseTheme, themeChoice, type ThemeChoice } from "../../ui/theme";

const THEMES: [ThemeChoice, string][] = [
  ["system", "As the system"],
  ["light", "Light"],
  ["dark", "Dark"],
];

export function ThisBrowser(): JSX.Element {
  const navigate = useNavigate();
  const [problem, setProblem] = createSignal<string>();
  const leave = async (): Promise<void> => {
    try {
      await signOut();
      setMe(undefined);
      navigate("/login");
    } catch (error) {
      setProblem(errorText(error));
    }
  };
  return (
    <section aria-label="This browser" class="this-browser">
      <label>
        Theme{" "}
        <select value={themeChoice()} onChange={(event) => chooseTheme(event.currentTarget.value as ThemeChoice)}>
          <For each={THEMES}>{([choice, label]) => <option value={choice}>{label}</option>}</For>
        </select>
      </label>
      <Show when={me()?.device}>
        <button type="button" onClick={() => void leave()}>
          Sign out
        </button>
      </Show>
      <Show when={me()}>
        {(login) => (
          <span class="muted">
            jackfield {login().version}
            <Show when={login().tenant}>{(tenant) => <>, tenant {tenant()}</>}</Show>
          </span>
        )}
      </Show>
      <Show when={problem()}>
        {(text) => (
          <p class="notice danger" role="alert">
            {text()}
          </p>
        )}
      </Show>
    </section>
  );
}
