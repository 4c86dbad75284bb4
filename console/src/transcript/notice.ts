/** The sentences about the session itself: opened, restored, moved, exited. */

import type { LogEvent } from "../api/stream/messages";
import { frameParams, listMember, member, stringMember, type Json, type NoticeItem } from "./item";

type Sentence = Pick<NoticeItem, "text"> & Partial<Pick<NoticeItem, "level" | "detail">>;

const RESTORED: Record<string, string> = {
  resumed: "The agent was restarted and resumed the conversation",
  reloaded: "The agent was restarted and reloaded the conversation",
  forked: "The agent was started from a fork of the conversation",
  reseeded: "The agent was restarted from a summary of the conversation",
  failed: "The agent could not be restarted with the conversation",
};

const SERVED: Record<string, string> = {
  done: "The daemon handled a request of the agent",
  denied: "The daemon denied a request of the agent",
  failed: "The daemon could not handle a request of the agent",
  unknown: "The agent exited while the daemon handled its request",
};

/** The notice of an event, if it has one. */
export function eventNotice(event: LogEvent): NoticeItem | undefined {
  const sentence = describeEvent(event);
  if (!sentence) return undefined;
  const { seq, at } = event;
  return { kind: "notice", key: `notice-${seq}`, seq, at, level: "info", detail: "", ...sentence };
}

function describeEvent(event: LogEvent): Sentence | undefined {
  const text = (name: string): string => stringMember(event, name);
  switch (event.is) {
    case "opened": {
      const tried = listMember(event, "fallback").map((it) => `${stringMember(it, "agent")}: ${stringMember(it, "why")}`);
      return { text: `Session opened: ${text("agent")} in ${text("cwd")}`, detail: tried.join("\n") };
    }
    case "forked":
      return { text: `Forked from ${text("from")} after event ${String(member(event, "seqThere"))}` };
    case "imported":
      return { text: `Imported from ${text("from")}` };
    case "moved": {
      const to = text("to") && ` to ${text("to")}`;
      return { text: `Moved from ${text("from")}${to}: ${text("why")}` };
    }
    case "bound": {
      const restore = text("restore");
      const tried = listMember(event, "tried").map((it) => `${stringMember(it, "restore")}: ${stringMember(it, "why")}`);
      const level = restore === "failed" ? "error" : "info";
      return { text: RESTORED[restore] ?? `The agent was restarted (${restore})`, detail: tried.join("\n"), level };
    }
    case "withdrawn":
      return { text: `A queued prompt did not run: ${text("why")}` };
    case "cancelled":
      return { text: describeCancellation(member(event, "step")) };
    case "refused":
      return { text: `Refused ${text("operation")} from ${text("by")}: ${text("why")}`, level: "warning" };
    case "hostRefused": {
      const port = member(event, "port");
      const host = port === undefined ? text("host") : `${text("host")}:${String(port)}`;
      return { text: `The sandbox refused the connection to ${host}: ${text("why")}`, level: "warning" };
    }
    case "leftOut": {
      const sizes = `${String(member(event, "bytes"))} bytes exceed the limit of ${String(member(event, "limit"))} bytes`;
      return { text: `Left out ${text("what")} of the agent: ${sizes}`, level: "warning" };
    }
    case "unasked": {
      const title = stringMember(member(event, "call"), "title");
      return { text: `Done without the approval that a rule requires: ${title}`, level: "warning" };
    }
    case "served":
      return describeServed(event);
    case "configured": {
      const setting = describeSetting(event);
      return setting === undefined ? undefined : { text: setting };
    }
    case "gone":
      return { text: `The agent exited: ${text("status")}`, detail: text("stderr"), level: "warning" };
    case "closed":
      return { text: "Session closed" };
    default:
      return undefined;
  }
}

function describeCancellation(step: Json | undefined): string {
  if (step === 2) return "Cancellation requested again";
  const isStopped = typeof step === "number" && step > 2;
  return isStopped ? "The agent ignored the cancellation; its process is stopped" : "Cancellation requested";
}

function describeServed(event: LogEvent): Sentence {
  const call = member(event, "call");
  const method = stringMember(call, "method");
  const path = stringMember(call, "path");
  const command = [stringMember(call, "command"), ...listMember(call, "args").map(String)].join(" ");
  const request =
    method === "fs/read_text_file" ? `read ${path}` : method === "fs/write_text_file" ? `write ${path}` : `run ${command}`;
  const how = stringMember(event, "how");
  const why = stringMember(event, "why") && `: ${stringMember(event, "why")}`;
  return { text: `${SERVED[how] ?? how}: ${request}${why}`, level: how === "done" ? "info" : "warning" };
}

/** A changed setting as `name: value`. */
function describeSetting(event: LogEvent): string | undefined {
  const params = frameParams(event);
  switch (stringMember(member(event, "frame"), "method")) {
    case "session/set_mode":
      return `Mode: ${stringMember(params, "modeId")}`;
    case "session/set_model":
      return `Model: ${stringMember(params, "modelId")}`;
    case "session/set_config_option": {
      const value = member(params, "value");
      return `${stringMember(params, "configId")}: ${typeof value === "string" ? value : JSON.stringify(value)}`;
    }
    case "_jackfield/rename":
      return `Name: ${stringMember(params, "name")}`;
    default:
      return undefined;
  }
}
