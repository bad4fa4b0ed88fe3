import type { Command } from 'commander'
import type { Json } from '../domain/entry.ts'
import { parseKey } from '../domain/key.ts'
import { type KnowledgeCategory, knowledgeCategories } from '../domain/knowledge.ts'
import type { KnowledgePolicy } from '../domain/profile.ts'
import { exitCodesHelp } from './errors.ts'
import { addStoreOptions, resolveStore, type StoreFlags } from './openStore.ts'
import { printResult } from './output.ts'

type Flags = StoreFlags & {
  readonly category: string
  readonly confidence?: string
  readonly by?: string
  readonly session?: string
}

const help = `
Examples:
  threadkeep remember acme 'opening hours' 'nine to five'
  threadkeep remember acme language '"German"' --category user_preference --confidence 0.9
  threadkeep remember acme 'opening hours' 'ten to six' --by assistant --session ann

${exitCodesHelp}`

export function addRememberCommand(program: Command): void {
  addStoreOptions(program.command('remember'))
    .description('store knowledge that all sessions of a scope share')
    .argument('<scope>', 'scope')
    .argument('<key>', 'subject of the knowledge')
    .argument('<value>', 'text, or JSON')
    .option('--category <name>', knowledgeCategories.join(', '), 'domain')
    .option('--confidence <number>', 'confidence from 0 to 1 (0.5, higher each time it is stated again)')
    .option(
      '--by <source>',
      'source: user, assistant or tool; with the default policy, an assistant needs approval and a tool is refused (user)',
    )
    .option('--session <id>', 'session of the scope that states it; repeated statements of one session count once')
    .addHelpText('after', help)
    .action(run)
}

async function run(scope: string, key: string, value: string, flags: Flags): Promise<void> {
  const session = flags.session === undefined ? undefined : parseKey(`${scope}:${flags.session}`).id
  const { openMemory } = await import('../index.ts')
  const { url, key: storeKey } = resolveStore(flags, process.env)
  await using memory = await openMemory({ store: url, ...(storeKey === undefined ? {} : { storeKey }) })
  const knowledge = await memory.remember(scope, {
    category: flags.category as KnowledgeCategory,
    key,
    value: parseValue(value),
    ...(flags.confidence === undefined ? {} : { confidence: Number(flags.confidence) }),
    ...(flags.by === undefined ? {} : { by: flags.by as keyof KnowledgePolicy }),
    ...(session === undefined ? {} : { session }),
  })
  const details = `(${knowledge.category}, confidence ${Number(knowledge.confidence.toFixed(2))})`
  const pending = `Stored ${key} in ${scope} ${details}, pending approval. Approve it with threadkeep knowledge approve ${scope} ${knowledge.id}`
  printResult(flags.json, knowledge, [knowledge.pending === true ? pending : `Stored ${key} in ${scope} ${details}.`])
}

/** Parses JSON; anything else is text. */
function parseValue(text: string): Json {
  try {
    return JSON.parse(text) as Json
  } catch {
    return text
  }
}
