/** The application: the routes and the frame around every page. Each page is loaded when it is first shown. */

import { Route, Router, type RouteSectionProps } from "@solidjs/router";
import { lazy, type JSX } from "solid-js";
import { Frame } from "./frame";
import { PageServices } from "./page-services";

const SessionsPage = lazy(() => import("../pages/sessions"));
const SessionPage = lazy(() => import("../pages/session"));
const InboxPage = lazy(() => import("../pages/inbox"));
const UsagePage = lazy(() => import("../pages/usage"));
const AgentsPage = lazy(() => import("../pages/agents"));
const FleetPage = lazy(() => import("../pages/fleet"));
const DevicesPage = lazy(() => import("../pages/devices"));
const LoginPage = lazy(() => import("../pages/login"));

function Root(props: RouteSectionProps): JSX.Element {
  return (
    <>
      <PageServices />
      <Frame {...props} />
    </>
  );
}

export function App(): JSX.Element {
  return (
    <Router base="/console" root={Root}>
      <Route path="/" component={SessionsPage} />
      <Route path="/inbox" component={InboxPage} />
      <Route path="/sessions/:id/:tab?" component={SessionPage} />
      <Route path="/usage" component={UsagePage} />
      <Route path="/agents" component={AgentsPage} />
      <Route path="/fleet" component={FleetPage} />
      <Route path="/devices" component={DevicesPage} />
      <Route path="/login" component={LoginPage} />
      <Route path="*" component={SessionsPage} />
    </Router>
  );
}
