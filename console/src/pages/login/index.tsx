/** The page "Sign in". */

import type { JSX } from "solid-js";

export default function LoginPage(): JSX.Element {
  return <h1>Sign in</h1>;
}
