// Names of operations and of who did them.

import { strings } from './strings';
import { fileName } from './text';
import type { EventName } from './types';

const words = strings.activity;

const AGENTS: Record<string, string> = { cli: words.commandLine, other: words.otherProgram, auto: words.automatic };

/** The name of an agent: clients have one, people, other programs and maintenance do not. */
export const agentName = (value: string): string => AGENTS[value] ?? value;

export const opName = (op: string): string => (words.ops as Record<string, string>)[op] ?? op;

/** An operation in a few words, such as “Deleted Packing list”. */
export function nameText(name: EventName): string {
  const subject = name.subject?.split(' -> ')[0] ?? '';
  return `${opName(name.op)} ${fileName(subject)}`.trim();
}
