import type { Command } from 'commander'

export type ListedCommand = { readonly path: string; readonly command: Command }

/** Lists a command and all its subcommands with their names after `threadkeep`. */
export const listCommands = (command: Command, path: readonly string[] = []): readonly ListedCommand[] => [
  { path: path.join(' '), command },
  ...command.commands.flatMap((child) => listCommands(child, [...path, child.name()])),
]
