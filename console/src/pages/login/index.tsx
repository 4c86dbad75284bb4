/** The page "Sign in": uses the code of a login link at once, or accepts a pasted code or link. */

import { useNavigate, useSearchParams } from "@solidjs/router";
import { createSignal, onCleanup, onMount, Show, type JSX } from "solid-js";
import { signIn } from "../../api/account";
import { errorText } from "../../api/client";
import { reconnect } from "../../state/daemon";
import { setMe } from "../../state/me";
import "../../ui/page.css";
import { parseCode, suggestDeviceName, takeCodeFromAddress } from "./code";
import "./login.css";

// When the module is loaded: the code must not stay in the address if something later fails.
let codeOfAddress = takeCodeFromAddress();

export default function LoginPage(): JSX.Element {
  const navigate = useNavigate();
  const [search] = useSearchParams<{ next?: string }>();
  const [name, setName] = createSignal(suggestDeviceName(navigator.userAgent));
  const [pasted, setPasted] = createSignal("");
  const [isBusy, setBusy] = createSignal(false);
  const [problem, setProblem] = createSignal<string>();

  const useCode = async (code: string): Promise<void> => {
    setBusy(true);
    setProblem(undefined);
    try {
      setMe(await signIn(code, name().trim() || suggestDeviceName(navigator.userAgent)));
      reconnect();
      navigate(search.next?.startsWith("/") ? search.next : "/", { replace: true });
    } catch (error) {
      setProblem(errorText(error));
    } finally {
      setBusy(false);
    }
  };
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    const code = parseCode(pasted());
    if (code !== "") void useCode(code);
    else setProblem("This is neither a code nor a login link.");
  };
  const useAddress = (): void => {
    const code = takeCodeFromAddress() || codeOfAddress;
    codeOfAddress = "";
    if (code !== "") void useCode(code);
  };
  onMount(() => {
    useAddress();
    // A new link that is opened in this tab changes only the fragment of the address.
    addEventListener("hashchange", useAddress);
    onCleanup(() => removeEventListener("hashchange", useAddress));
  });

  return (
    <div class="page login">
      <h1>Sign in</h1>
      <p>
        Run <code>jackfield console</code> on the computer of the daemon: it opens this page with a code. For another
        device, <code>jackfield console --pair</code> prints a QR code. A code is valid for 60 seconds and works once.
      </p>
      <div role="alert">
        <Show when={problem()}>
          {(text) => (
            <div class="notice danger">
              <p>{text()}</p>
              <p>
                Codes work once and only for 60 seconds. Run <code>jackfield console</code> again for a new one.
              </p>
            </div>
          )}
        </Show>
      </div>
      <form class="login-form" onSubmit={submit}>
        <label>
          Code or link
          <input
            name="code"
            autocomplete="off"
            autocapitalize="none"
            spellcheck={false}
            required
            value={pasted()}
            onInput={(event) => setPasted(event.currentTarget.value)}
          />
        </label>
        <label>
          Name of this device
          <input name="device" maxlength={64} value={name()} onInput={(event) => setName(event.currentTarget.value)} />
        </label>
        <button type="submit" class="primary" disabled={isBusy()}>
          {isBusy() ? "Signing in…" : "Sign in"}
        </button>
      </form>
    </div>
  );
}
