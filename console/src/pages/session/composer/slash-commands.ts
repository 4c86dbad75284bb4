/** Completion of the commands that the agent offers: a prompt that begins with `/`. */

export interface SlashCommand {
  name: string;
  description: string;
  hint?: string | null;
}

const SHOWN_MAX = 50;

/** The commands that match what is typed before the caret; those that begin with it come first. */
export function matchCommands(text: string, caret: number, commands: readonly SlashCommand[]): SlashCommand[] {
  const typed = /^\/(\S*)$/.exec(text.slice(0, caret))?.[1]?.toLowerCase();
  if (typed === undefined) return [];
  const names = commands.map((command) => ({ command, name: command.name.toLowerCase() }));
  const begin = names.filter((it) => it.name.startsWith(typed));
  const contain = names.filter((it) => !it.name.startsWith(typed) && it.name.includes(typed));
  return [...begin, ...contain].slice(0, SHOWN_MAX).map((it) => it.command);
}

/** The text with the command in place of the first word. */
export const insertCommand = (text: string, name: string): string => `/${name} ${text.replace(/^\/\S*\s?/, "")}`;
