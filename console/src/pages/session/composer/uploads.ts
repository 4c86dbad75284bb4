/**
 * Files that are pasted, dropped or chosen for the next prompt: uploaded at once, with progress.
 *
 * The daemon has the files, so a reload needs only their paths. The browser asks before it leaves the page during an
 * upload.
 */

import { createEffect, onCleanup } from "solid-js";
import { createStore, produce } from "solid-js/store";
import { readDraftFiles, saveDraftFiles, type DraftFile } from "./draft";

export interface Attachment {
  id: number;
  name: string;
  size: number;
  /** A local address of an image; none after a reload. */
  previewUrl: string | undefined;
  status: "uploading" | "ready" | "failed";
  /** From 0 to 1. */
  progress: number;
  /** Where the daemon stored it. */
  path: string | undefined;
  problem: string | undefined;
}

/** The daemon accepts uploads of this size. */
const FILE_BYTES_MAX = 16 * 1024 * 1024;
const FILES_MAX = 16;
/** Types that a browser shows without running anything. An SVG is not one of them. */
const PREVIEW_TYPES = ["image/png", "image/jpeg", "image/gif", "image/webp"];
/** The daemon sends files with these names as images; of others, the agent gets the path. */
const IMAGE_NAME = /\.(png|jpe?g|gif|webp)$/i;

export interface Uploads {
  attachments: readonly Attachment[];
  add(files: Iterable<File>): void;
  remove(id: number): void;
  /** Removes all, and returns the paths of the stored ones for a prompt. */
  take(): { imagePaths: string[]; otherPaths: string[] };
  isUploading(): boolean;
}

export function createUploads(sessionId: string): Uploads {
  const kept = readDraftFiles(sessionId).map((it, index) => toAttachment(index, it));
  const [attachments, setAttachments] = createStore<Attachment[]>(kept);
  const requests = new Map<number, XMLHttpRequest>();
  let lastId = kept.length;
  const update = (id: number, change: Partial<Attachment>): void => setAttachments((it) => it.id === id, change);
  const forget = (id: number): void => {
    requests.get(id)?.abort();
    requests.delete(id);
    const url = attachments.find((it) => it.id === id)?.previewUrl;
    if (url !== undefined) URL.revokeObjectURL(url);
    setAttachments(produce((all) => all.splice(all.findIndex((it) => it.id === id), 1)));
  };
  const add = (file: File): void => {
    const id = ++lastId;
    const previewUrl = PREVIEW_TYPES.includes(file.type) ? URL.createObjectURL(file) : undefined;
    const name = file.name || `pasted.${file.type.split("/")[1] ?? "bin"}`;
    const row: Attachment = { id, name, size: file.size, previewUrl, status: "uploading", progress: 0, path: undefined, problem: undefined };
    setAttachments(attachments.length, row);
    const problem = checkFile(file, attachments.length);
    if (problem !== undefined) return update(id, { status: "failed", problem });
    requests.set(id, uploadFile(file, name, (change) => update(id, change)));
  };
  const isUploading = (): boolean => attachments.some((it) => it.status === "uploading");
  createEffect(() => saveDraftFiles(sessionId, attachments.flatMap(({ name, size, path }) => (path === undefined ? [] : { name, size, path }))));
  askBeforeLeaving(isUploading);
  onCleanup(() => {
    requests.forEach((it) => it.abort());
    for (const { previewUrl } of attachments) if (previewUrl !== undefined) URL.revokeObjectURL(previewUrl);
  });
  return {
    attachments,
    add: (files) => [...files].forEach(add),
    remove: forget,
    take: () => {
      const paths = attachments.flatMap((it) => it.path ?? []);
      attachments.map((it) => it.id).forEach(forget);
      const isImage = (path: string): boolean => IMAGE_NAME.test(path);
      return { imagePaths: paths.filter(isImage), otherPaths: paths.filter((it) => !isImage(it)) };
    },
    isUploading,
  };
}

const toAttachment = (id: number, { name, size, path }: DraftFile): Attachment => ({
  id, name, size, path, previewUrl: undefined, status: "ready", progress: 1, problem: undefined,
});

/** What is being uploaded is lost when the page is left. */
function askBeforeLeaving(isUploading: () => boolean): void {
  const onUnload = (event: Event): void => void (isUploading() && event.preventDefault());
  addEventListener("beforeunload", onUnload);
  onCleanup(() => removeEventListener("beforeunload", onUnload));
}

function checkFile(file: File, count: number): string | undefined {
  if (count > FILES_MAX) return `at most ${FILES_MAX} files are permitted`;
  if (file.size > FILE_BYTES_MAX) return "it is larger than 16 MiB";
  if (file.size === 0) return "it is empty";
  return undefined;
}

/** `fetch` has no progress of uploads. */
function uploadFile(file: File, name: string, onChange: (change: Partial<Attachment>) => void): XMLHttpRequest {
  const request = new XMLHttpRequest();
  request.open("POST", `/api/upload?name=${encodeURIComponent(name)}`);
  request.setRequestHeader("content-type", "application/octet-stream");
  request.responseType = "json";
  const fail = (problem: string): void => onChange({ status: "failed", problem });
  request.upload.onprogress = (event) => event.lengthComputable && onChange({ progress: event.loaded / event.total });
  request.onerror = () => fail("the connection was lost; remove it and try again");
  request.onload = () => {
    const body = request.response as { files?: { path: string }[]; error?: { message: string } } | null;
    const path = body?.files?.[0]?.path;
    if (request.status === 200 && path !== undefined) onChange({ status: "ready", progress: 1, path });
    else fail(body?.error?.message ?? `the daemon answered ${request.status}`);
  };
  request.send(file);
  return request;
}
