/** The content of a message: Markdown, images, files and links. */

import { createMemo, For, Match, Show, Switch, type JSX } from "solid-js";
import { shortLine, visibleProse } from "../../ui/visible-text";
import type { MessagePart } from "../item";
import { GrowingMarkdown, isRasterImage, isSafeLink, type MarkdownBlock } from "../markdown";
import { CodeBlock } from "./code-block";
import { LongText } from "./long-text";

/** Text without a blank line that is longer than this is not parsed. */
const MARKDOWN_CHARS_MAX = 100_000;

/** `isPlain` for text that is not Markdown, such as a prompt. */
export function MessageParts(props: { parts: readonly MessagePart[]; isPlain?: boolean }): JSX.Element {
  return (
    <For each={props.parts.map((_, index) => index)}>
      {(index) => <MessagePartView part={props.parts[index] as MessagePart} isPlain={props.isPlain ?? false} />}
    </For>
  );
}

function MessagePartView(props: { part: MessagePart; isPlain: boolean }): JSX.Element {
  const as = <T extends MessagePart["type"]>(type: T): Extract<MessagePart, { type: T }> | undefined =>
    props.part.type === type ? (props.part as Extract<MessagePart, { type: T }>) : undefined;
  return (
    <Switch fallback={<p class="muted">[{props.part.type === "other" ? shortLine(props.part.name) : props.part.type}]</p>}>
      <Match when={as("text")}>{(it) => <TextView text={it().text} isPlain={props.isPlain} />}</Match>
      <Match when={as("image")}>{(it) => <ImageView mimeType={it().mimeType} data={it().data} />}</Match>
      <Match when={as("link")}>{(it) => <LinkView uri={it().uri} name={it().name} />}</Match>
      <Match when={as("file")}>
        {(it) => (
          <div class="attached-file">
            <p class="attached-file-name">{shortLine(it().uri)}</p>
            <LongText text={it().text} label={`File ${shortLine(it().uri)}`} />
          </div>
        )}
      </Match>
    </Switch>
  );
}

function TextView(props: { text: string; isPlain: boolean }): JSX.Element {
  const isLong = (): boolean => props.text.length > MARKDOWN_CHARS_MAX;
  return (
    <Switch fallback={<MarkdownView text={props.text} />}>
      <Match when={isLong()}>
        <LongText text={props.text} label="Long text" />
      </Match>
      <Match when={props.isPlain}>
        <p class="plain-text">{visibleProse(props.text)}</p>
      </Match>
    </Switch>
  );
}

export function MarkdownView(props: { text: string }): JSX.Element {
  const markdown = new GrowingMarkdown();
  const blocks = createMemo(() => markdown.update(props.text));
  // Blocks of code keep their component while they grow; the place of a block does not change.
  const kinds = createMemo(() => blocks().map((it, index) => `${index}/${it.kind}`));
  return (
    <div class="markdown">
      <For each={kinds()}>
        {(_, index) => {
          const block = (): MarkdownBlock | undefined => blocks()[index()];
          const code = (): Extract<MarkdownBlock, { kind: "code" }> | undefined => {
            const it = block();
            return it?.kind === "code" ? it : undefined;
          };
          return (
            <Show when={code()} fallback={<HtmlBlock block={block()} />}>
              {(it) => <CodeBlock text={it().text} language={it().language} />}
            </Show>
          );
        }}
      </For>
    </div>
  );
}

function HtmlBlock(props: { block: MarkdownBlock | undefined }): JSX.Element {
  return <div class="markdown-block" innerHTML={props.block?.kind === "html" ? props.block.html : ""} />;
}

function ImageView(props: { mimeType: string; data: string }): JSX.Element {
  const url = (): string => `data:${props.mimeType};base64,${props.data}`;
  return (
    <Show when={isRasterImage(url())} fallback={<p class="muted">[image of type {shortLine(props.mimeType, 40)}]</p>}>
      <img class="message-image" src={url()} alt="In the message" />
    </Show>
  );
}

function LinkView(props: { uri: string; name: string }): JSX.Element {
  return (
    <p class="attached-link">
      <Show when={isSafeLink(props.uri)} fallback={<span title={shortLine(props.uri)}>{shortLine(props.name)}</span>}>
        <a href={props.uri} target="_blank" rel="noopener noreferrer">
          {shortLine(props.name)}
        </a>
      </Show>
    </p>
  );
}
