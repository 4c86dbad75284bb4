/**
 * The only Trusted Types policy of the console, besides the one of DOMPurify.
 *
 * It accepts HTML only from the compiled templates of components, and the addresses of our own workers.
 * Text of agents never comes here: it is sanitized by DOMPurify, or set as text.
 */

interface Policy {
  createHTML(text: string): unknown;
  createScriptURL(url: string): unknown;
}

interface PolicyFactory {
  createPolicy(name: string, rules: { createHTML(text: string): string; createScriptURL(url: string): string }): Policy;
}

const factory = (globalThis as { trustedTypes?: PolicyFactory }).trustedTypes;

const rules = {
  createHTML: (text: string): string => text,
  createScriptURL: (url: string): string => {
    const { origin, pathname } = new URL(url, location.href);
    if (origin !== location.origin || !pathname.startsWith("/console/")) throw new TypeError(`${url} is not a script of the console`);
    return url;
  },
};

const policy: Policy = factory?.createPolicy("jackfield", rules) ?? rules;

/** The HTML of a compiled template. Only `solid-web.ts` calls this. */
export const templateHtml = (text: string): string => policy.createHTML(text) as string;

/** The address of a worker of ours. */
export const workerUrl = (url: string): string => policy.createScriptURL(url) as string;
