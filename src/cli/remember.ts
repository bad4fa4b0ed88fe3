import type { Command } from 'commander'
import type { Json } from '../domain/entry.ts'
import { parseKey } from '../domain/key.ts'
import { type Category, categories } from '../domain/knowledge.ts'
import type { Learning } from '../domain/profile.ts'
import { exitCodes } from './failure.ts'
import { say } from './say.ts'
import { type StoreFlags, storeSettings, withStore } from './store.ts'

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

${exitCodes}`

/** The command that keeps something for all sessions of a scope. */
export function addRemember(program: Command): void {
  withStore(program.command('remember'))
    .description('keep something that every session of a scope should know')
    .argument('<scope>', 'the scope')
    .argument('<key>', 'what it is about')
    .argument('<value>', 'text, or JSON')
    .option('--category <name>', categories.join(', '), 'domain')
    .option('--confidence <number>', 'how sure it is, from 0 to 1 (0.5, a little more each time it is told)')
    .option(
      '--by <who>',
      'who says so: user, assistant or tool; what an assistant says waits for approval, what a tool says is refused (user)',
    )
    .option('--session <id>', 'the session of the scope in which it was said: however often it says so, it counts once')
    .addHelpText('after', help)
    .action(run)
}

async function run(scope: string, key: string, value: string, flags: Flags): Promise<void> {
  const session = flags.session === undefined ? undefined : parseKey(`${scope}:${flags.session}`).id
  const { openMemory } = await import('../index.ts')
  const { url, key: storeKey } = storeSettings(flags, process.env)
  await using memory = await openMemory({ store: url, ...(storeKey === undefined ? {} : { storeKey }) })
  const given = {
    ...(flags.confidence === undefined ? {} : { confidence: Number(flags.confidence) }),
    ...(flags.by === undefined ? {} : { by: flags.by as keyof Learning }),
    ...(session === undefined ? {} : { session }),
  }
  const known = await memory.remember(scope, {
    category: flags.category as Category,
    key,
    value: parsed(value),
    ...given,
  })
  const belief = `(${known.category}, confidence ${Number(known.confidence.toFixed(2))})`
  const waits = `${scope} will know ${key} ${belief} once it is approved: threadkeep knowledge approve ${scope} ${known.id}`
  say(flags.json, known, [known.pending === true ? waits : `${scope} knows ${key} ${belief}.`])
}

/** What is no JSON is text. */
function parsed(text: string): Json {
  try {
    return JSON.parse(text) as Json
  } catch {
    return text
  }
}
