import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { openGraph } from '../../src/graph/graph.ts'
import { openMemory } from '../../src/index.ts'
import { verifies } from '../requirements/verifies.ts'
import { createCliHarness } from './cliHarness.ts'
import { startCommand } from './command.ts'

const { folder, run, output, json } = createCliHarness('first-minutes')

type Message = { readonly role: string; readonly content: string }

describe('a new user', () => {
  verifies('S-02', 'chat › knows what the server was told, and the server what chat and remember store', async () => {
    const server = startCommand(['serve', '--port', '0', '--json'], { THREADKEEP_STORE: '' }, folder)
    try {
      const { url, store } = JSON.parse(await server.waitForOutput('\n')) as { url: string; store: string }
      expect(store).toBe('sqlite:threadkeep.db')
      const ask = async (content: string): Promise<string> => {
        const response = await fetch(`${url}/v1/demo:me/chat/completions`, {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify({ model: 'any', messages: [{ role: 'user', content }] }),
        })
        const body = (await response.json()) as { choices: { message: Message }[] }
        return body.choices[0]?.message.content ?? ''
      }
      await ask('My cat is called Miso.')
      const { stdout } = await run(['chat'], 'What is my cat called?\nThe walrus is called Bruno.\n')
      expect(stdout).toContain('From what you told me: "My cat is called Miso."')
      expect(await ask('What is the walrus called?')).toContain('The walrus is called Bruno.')
      await output('remember', 'demo', 'opening hours', 'nine to five')
      const { messages } = await json<{ messages: Message[] }>(
        'context',
        'demo:me',
        '--query',
        'What are the opening hours?',
      )
      expect(JSON.stringify(messages)).toContain('nine to five')
      expect(await ask('What are the opening hours?')).toContain('nine to five')
      expect((await run(['chat'], 'When are the opening hours?\n')).stdout).toContain('nine to five')
    } finally {
      server.process.kill('SIGTERM')
      await server.result
    }
  })

  it('chat › with a RAM-only profile and no store › chats in RAM', async () => {
    expect((await run(['chat', 'tab:1', '--profile', 'ephemeral'], 'Hello\n')).code).toBe(0)
    expect(await json('sessions', 'list', 'tab')).toMatchObject({ items: [] })
  })
})

describe('threadkeep upkeep run', () => {
  beforeAll(async () => {
    await using memory = await openMemory({ store: `sqlite:${join(folder, 'threadkeep.db')}`, upkeep: false })
    for (const key of ['home:ann', 'home:bob'])
      await memory.append(key, [
        { role: 'user', content: 'I prefer dark mode. My dog is called Rex.' },
        { role: 'assistant', content: 'Noted.' },
        { role: 'user', content: 'What is my dog called?' },
        { role: 'assistant', content: 'Rex.' },
      ])
    await memory.remember('home', { category: 'domain', key: 'wifi', value: 'upstairs' })
  })

  verifies('S-02', 'facts and summaries › are empty with a reason, and filled by upkeep run', async () => {
    expect(await output('facts', 'home:ann')).toBe(
      'No facts yet: they are extracted when a session has grown. Run "threadkeep upkeep run home:ann" to extract what the user has stated.\n',
    )
    expect(await output('summaries', 'home:ann')).toContain('Run "threadkeep upkeep run home:ann --force"')
    const [first] = (await json<{ items: { facts: number; summaries: number }[] }>('upkeep', 'run', 'home:ann')).items
    expect(first).toMatchObject({ summaries: 0, tokens: { prompt: 0, completion: 0 }, cost: 0, degraded: [] })
    expect(first?.facts).toBeGreaterThan(1)
    expect(await output('facts', 'home:ann')).toMatch(/theme: dark\n/)
    expect((await json<{ items: object[] }>('upkeep', 'run', 'home:ann')).items).toMatchObject([{ facts: 0 }])
    expect(await output('upkeep', 'run', 'home:ann', '--force')).toMatch(
      /^session +new facts +new summaries +model tokens +cost\nhome:ann +0 +1 +0 +\$0\.0000\n$/,
    )
    expect(await output('summaries', 'home:ann')).toMatch(/^progressive {2}version 1 {2}by builtin {2}m1–m2 .*Rex/)
    expect(await json('sessions', 'show', 'home:ann')).toMatchObject({ messages: 4 })
  })

  it('--scope and --all › work on the sessions of users only', async () => {
    const keysOf = async (...args: string[]) =>
      (await json<{ items: { key: string }[] }>('upkeep', 'run', ...args)).items.map(({ key }) => key)
    expect(await keysOf('--scope', 'home')).toEqual(['home:ann', 'home:bob'])
    expect(await keysOf('--all')).toEqual(['demo:me', 'home:ann', 'home:bob'])
    expect(await output('upkeep', 'run', '--scope', 'nobody')).toBe('No sessions with messages.\n')
  })

  it('with a model that fails › falls back, reports it and exits with 1', async () => {
    const failing = ['--force', '--provider', 'local', '--upstream', 'http://127.0.0.1:9/v1']
    const { code, stdout } = await run(['upkeep', 'run', 'home:bob', ...failing, '--json'])
    const { items } = JSON.parse(stdout) as { items: { cost: number | null; tokens: { prompt: number } }[] }
    expect(code).toBe(1)
    expect(items[0]).toMatchObject({ summaries: 1, cost: null, degraded: [{ step: 'summary' }, { step: 'facts' }] })
    expect(items[0]?.tokens.prompt).toBeGreaterThan(0)
  })
})

describe('threadkeep forget', () => {
  const copy = join(folder, 'erase.db')
  const store = ['--store', `sqlite:${copy}`]
  beforeAll(async () => {
    await using memory = await openMemory({ store: `sqlite:${copy}` })
    await memory.append('acme:ann', [
      { role: 'user', content: 'I prefer dark mode. My cat is called Miso.' },
      { role: 'assistant', content: 'Noted.' },
      ...Array.from({ length: 8 }, (_, index) => ({ role: 'user' as const, content: `Walrus number ${index}.` })),
    ])
    await memory.append('acme:bob', [{ role: 'user', content: 'Nothing.' }])
    await memory.upkeep.run('acme:ann', { summarise: true })
    await memory.remember('acme', { category: 'domain', key: 'walrus', value: 'Bruno' })
    await memory.remember('acme', { category: 'user_preference', key: 'theme', value: 'light', person: 'ann' })
    const graph = await openGraph(`sqlite:${copy}`)
    await graph.nodes.createEntities('acme', [
      { name: 'Walrus', entityType: 'animal', observations: ['is called Bruno'] },
    ])
    await graph.close()
  })

  verifies(['X-05', 'P-04'], 'of a session › lists messages with their first words, facts and summaries', async () => {
    const { code, stdout } = await run(['forget', 'acme:ann', ...store])
    expect(code).toBe(2)
    expect(stdout.split('\n').slice(0, 8)).toEqual([
      'Would delete for good:',
      expect.stringMatching(/^ {2}acme:ann: 10 messages, [2-9] facts, 1 summary$/),
      '    m1 user: I prefer dark mode. My cat is called Miso.',
      '    m2 assistant: Noted.',
      '    m3 user: Walrus number 0.',
      '    m4 user: Walrus number 1.',
      '    m5 user: Walrus number 2.',
      '    … and 5 messages more',
    ])
    expect(stdout).toMatch(/\nIn total: 1 session, 10 messages, [2-9] facts, 1 summary\.\n$/)
    expect(await json('sessions', 'show', 'acme:ann', ...store)).toMatchObject({ messages: 10 })
  })

  verifies(['X-05', 'P-04'], 'of a text › lists entries, knowledge and graph entities that contain it', async () => {
    const stdout = await output('forget', 'acme', '--text', 'walrus', '--dry-run', ...store)
    expect(stdout).toContain('  acme:ann: 8 messages, 1 summary\n    m3 user: Walrus number 0.\n')
    expect(stdout).toMatch(/\n {4}k\d+ knowledge: walrus: Bruno\n/)
    expect(stdout).toContain('\n  graph: animal Walrus\n')
    expect(stdout).toMatch(/\nIn total: 8 messages, 1 summary, 1 piece of knowledge, 1 graph entity\.\n$/)
  })

  verifies(['X-05', 'P-04'], 'of a scope › is what is then deleted', async () => {
    const { counts } = await json<{ counts: Record<string, number> }>(
      'forget',
      'acme',
      '--scope',
      '--dry-run',
      ...store,
    )
    expect(counts).toMatchObject({ sessions: 2, messages: 11, summaries: 1, knowledge: 2, entities: 1 })
    const { code } = await run(['forget', 'acme', '--scope', '--yes', ...store])
    expect(code).toBe(0)
    expect(await output('forget', 'acme', '--scope', ...store)).toBe('Nothing to delete.\n')
    expect(await json('sessions', 'list', ...store)).toMatchObject({ items: [] })
  })
})
