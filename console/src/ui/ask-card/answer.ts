/** Sends the answer to a request, and knows what this page has answered. */

import { JackfieldError, type Answer, type Ask } from "jackfield-client";
import { createSignal, type Accessor } from "solid-js";
import { api, errorText } from "../../api/client";
import type { AnsweredAsk, AskId } from "../../api/stream/messages";

/** The state of the answer of this page. */
export type AnswerState =
  | { status: "open" }
  | { status: "sending"; label: string }
  | { status: "sent"; label: string }
  /** Another client was faster, or the request has ended; `why` says who or how. */
  | { status: "closed"; why: string }
  | { status: "failed"; why: string };

export const askKey = (it: AskId): string => `${it.sessionId}/${it.ask}`;

/** What this page answered, by request: the label of the chosen option. */
const answeredHere = new Map<string, string>();

export interface AnswerSender {
  state: Accessor<AnswerState>;
  /** `label` names the answer for the user. Without effect while another answer is sent or after one was. */
  send(answer: Answer, label: string): Promise<void>;
}

export function createAnswerSender(ask: AskId): AnswerSender {
  const [state, setState] = createSignal<AnswerState>({ status: "open" });
  const send = async (answer: Answer, label: string): Promise<void> => {
    const { status } = state();
    if (status !== "open" && status !== "failed") return;
    setState({ status: "sending", label });
    answeredHere.set(askKey(ask), label);
    try {
      await api.asks.answer(ask, answer);
      setState({ status: "sent", label });
    } catch (error) {
      answeredHere.delete(askKey(ask));
      const isClosed = error instanceof JackfieldError && (error.status === 409 || error.status === 404);
      setState({ status: isClosed ? "closed" : "failed", why: errorText(error) });
    }
  };
  return { state, send };
}

/** How a request was answered, in a sentence; `ask` is the request, if the page still knows it. */
export function describeAnswer(answered: AnsweredAsk, ask: Ask | undefined): string {
  const here = answeredHere.get(askKey(answered));
  const chosen = ask?.options.find((it) => it.optionId === answered.option)?.name ?? answered.option;
  if (here !== undefined) return `You answered: ${here}`;
  const by = answered.by === undefined || answered.by === "" ? "It was closed elsewhere" : `${answered.by} answered`;
  return chosen === undefined ? by : `${by}: ${chosen}`;
}
