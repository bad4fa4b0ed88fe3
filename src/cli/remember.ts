import type { Command } from 'commander'
import type { Json, Knowledge, KnowledgeOrigin } from '../domain/entry.ts'
import { parseKey } from '../domain/key.ts'
import { type KnowledgeCategory, knowledgeCategories } from '../domain/knowledge.ts'
import type { KnowledgePolicy } from '../domain/profile.ts'
import type { Memory } from '../memory.ts'
import { addStoreOptions, resolveStore, type StoreFlags } from './openStore.ts'
import { option, setHelp } from './terminal/help.ts'
import { formatStatement, printResult } from './terminal/output.ts'

type Flags = StoreFlags & {
  readonly category: string
  readonly confidence?: string
  readonly by?: string
  readonly session?: string
  readonly person?: string
  readonly origin?: string
}

export function addRememberCommand(program: Command): void {
  const command = addStoreOptions(program.command('remember'))
    .description('store knowledge that all sessions of a scope share, or about a person')
    .argument('<scope>', 'scope')
    .argument('<key>', 'subject of the knowledge')
    .argument('<value>', 'text, or JSON')
    .option('--category <name>', knowledgeCategories.join(', '), 'domain')
    .addOption(
      option('--confidence <number>', 'confidence from 0 to 1', {
        fallback: '0.5, higher each time it is stated again',
      }),
    )
    .addOption(
      option(
        '--by <source>',
        'source: user, assistant or tool; with the default policy, an assistant needs approval and a tool is refused',
        { fallback: 'user' },
      ),
    )
    .option('--session <id>', 'session of the scope that states it; repeated statements of one session count once')
    .option('--person <id>', 'person it is about; stored in the memory of that person instead of the scope')
    .addOption(
      option('--origin <origin>', 'operator (never fades) or learned (fades without use)', {
        fallback: 'operator; learned with --session or a model',
      }),
    )
    .action(run)
  setHelp(command, {
    details: [
      'Takes effect at once: the next context of every session in the scope shows it when it matches the question, also in a running server on the same store.',
    ],
    examples: [
      "threadkeep remember acme 'opening hours' 'nine to five'",
      'threadkeep remember acme language German --category user_preference --person ann',
      "threadkeep remember acme 'opening hours' 'ten to six' --by assistant --session ann",
    ],
  })
}

async function run(scope: string, key: string, value: string, flags: Flags): Promise<void> {
  const session = flags.session === undefined ? undefined : parseKey(`${scope}:${flags.session}`).id
  const { openMemory } = await import('../index.ts')
  const { url, key: storeKey } = resolveStore(flags, process.env)
  await using memory = await openMemory({ store: url, ...(storeKey === undefined ? {} : { storeKey }) })
  const before = await findStatement(memory, scope, key, flags)
  const knowledge = await memory.remember(scope, {
    category: flags.category as KnowledgeCategory,
    key,
    value: parseValue(value),
    ...(flags.confidence === undefined ? {} : { confidence: Number(flags.confidence) }),
    ...(flags.by === undefined ? {} : { by: flags.by as keyof KnowledgePolicy }),
    ...(session === undefined ? {} : { session }),
    ...(flags.person === undefined ? {} : { person: flags.person }),
    ...(flags.origin === undefined ? {} : { origin: flags.origin as KnowledgeOrigin }),
  })
  const details = `(${knowledge.category}, confidence ${Number(knowledge.confidence.toFixed(2))})`
  const { scope: tenant } = parseKey(scope)
  const owner = flags.person === undefined ? tenant : `the memory of ${flags.person} in ${tenant}`
  const personFlag = flags.person === undefined ? '' : ` --person ${flags.person}`
  const pending = `, pending approval. Approve it with threadkeep knowledge approve ${tenant} ${knowledge.id}${personFlag}`
  const lines = [`Stored ${knowledge.key} in ${owner} ${details}${knowledge.pending === true ? pending : '.'}`]
  if (before !== undefined && formatStatement(before) !== formatStatement(knowledge))
    lines.push(`It replaces ${formatStatement(before)}`)
  printResult(flags.json, knowledge, lines)
}

/** Returns the knowledge that a statement with the same subject replaces. */
async function findStatement(memory: Memory, scope: string, key: string, flags: Flags): Promise<Knowledge | undefined> {
  const owner = flags.person === undefined ? {} : { person: flags.person }
  const known = await memory.upkeep.knowledge(scope, owner)
  return known.find((entry) => entry.category === flags.category && entry.key === key)
}

/** Parses JSON; anything else is text. */
function parseValue(text: string): Json {
  try {
    return JSON.parse(text) as Json
  } catch {
    return text
  }
}
