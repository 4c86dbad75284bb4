/** Starts the console: the change stream, then the application. */

import { render } from "solid-js/web";
import { App } from "./app/app";
import "./ui/theme.css";
import "./ui/base.css";
import { applyTheme } from "./ui/theme";
import { startStream } from "./state/daemon";
import { startOfflineSupport } from "./state/offline";

applyTheme();
startStream();
startOfflineSupport();
render(() => <App />, document.getElementById("root") as HTMLElement);
