import type { Command } from 'commander'
import { formatKey, parseKey } from '../domain/key.ts'
import { exitCodes } from './failure.ts'
import { glimpse, many, say, timeOf } from './say.ts'
import { wholeNumber } from './settings.ts'
import { existingSession, existingStore, type StoreFlags, withStore } from './store.ts'

type Flags = StoreFlags & { readonly limit: string; readonly after?: string }

const help = `
Examples:
  threadkeep sessions list acme
  threadkeep sessions show acme:ann --limit 20

${exitCodes}`

/** The commands that show which sessions there are, and what was said in one. */
export function addSessions(program: Command): void {
  const sessions = program.command('sessions').description('list sessions, or show one').addHelpText('after', help)
  withStore(sessions.command('list'))
    .description('list sessions in order of their keys')
    .argument('[scope]', 'only those of this scope')
    .option('--limit <number>', 'how many at most', '100')
    .option('--after <key>', 'go on after this key')
    .addHelpText('after', help)
    .action(list)
  withStore(sessions.command('show'))
    .description('show what was said in a session, the newest messages last')
    .argument('<key>', 'the session, as scope:session; a scope shows its own memory')
    .option('--limit <number>', 'how many messages at most', '50')
    .addHelpText('after', help)
    .action(show)
}

async function list(scope: string | undefined, flags: Flags): Promise<void> {
  const limit = wholeNumber(flags.limit, 'limit', 1)
  const store = await existingStore(flags, process.env)
  try {
    const found = await store.list({ ...(scope === undefined ? {} : { scope: parseKey(scope).scope }), after: flags.after ?? '', limit })
    const items = found.map(({ key, ...listed }) => ({ key: formatKey(key), ...listed }))
    const next = items.length === limit ? items.at(-1)?.key : undefined
    const more = next === undefined ? [] : [`There may be more: --after ${next}`]
    const lines = items.map(({ key, messages, touchedAt }) => `${key}  ${many(messages, 'message')}, last written ${timeOf(touchedAt)}`)
    say(flags.json, { items, next: next ?? null }, items.length === 0 ? ['No sessions.'] : [...lines, ...more])
  } finally {
    await store.close()
  }
}

async function show(text: string, flags: Flags): Promise<void> {
  const limit = wholeNumber(flags.limit, 'limit', 1)
  const key = parseKey(text)
  const store = await existingStore(flags, process.env)
  try {
    const { derived, messages, startedAt, touchedAt } = await existingSession(store, key)
    const said = await store.page(key, { limit, newest: true })
    const heading = `${text}: ${many(messages, 'message')}, ${many(derived.length, 'derived entry', 'derived entries')}, ${timeOf(startedAt)} to ${timeOf(touchedAt)}`
    const lines = said.map(({ id, role, name, content }) => `${id} ${name ?? role}: ${content}`)
    const known = derived.map(({ kind, id, ...entry }) => `${kind} ${id}: ${glimpse(JSON.stringify(entry))}`)
    say(flags.json, { key: text, messages, startedAt, touchedAt, items: said, derived }, [heading, ...lines, ...known])
  } finally {
    await store.close()
  }
}
