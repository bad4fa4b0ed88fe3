import { describe, expect } from 'vitest'
import { type Memory, openMemory, profiles } from '../../src/index.ts'
import { checkAnthropicBudget, checkBudget } from '../context/contextChecks.ts'
import { verifies } from '../requirements/verifies.ts'
import { assistant, user } from '../server/start.ts'
import { createTempPaths } from '../stores/tempPaths.ts'
import { keyFormats, namedSecrets } from '../text/secretFormats.ts'
import { findSecrets, secretInToolLoop } from './plantedSecrets.ts'

const fresh = createTempPaths()
const key = 'acme:ann'
const now = Date.UTC(2026, 2, 2, 9)
const clock = (): number => now

const secret = keyFormats[0]?.secret ?? ''
const other = keyFormats[11]?.secret ?? ''

const open = (
  options: { readonly secrets?: 'mask' | 'hide' | 'keep'; readonly budget?: number; readonly file?: string } = {},
): Promise<Memory> => {
  const { secrets = 'mask', budget = profiles.thread.budget, file = fresh() } = options
  return openMemory({ profile: { ...profiles.thread, secrets, budget }, store: `sqlite:${file}`, clock })
}

const placeholdersIn = async (memory: Memory, of: string): Promise<string[]> =>
  (await memory.transcript(of)).flatMap(
    ({ content, toolCalls }) => `${content} ${JSON.stringify(toolCalls ?? '')}`.match(/⟨secret:\d+⟩/g) ?? [],
  )

describe('the placeholder of a secret', () => {
  verifies('X-08', 'is the same for the same secret of a session and differs between secrets', async () => {
    await using memory = await open()
    await memory.append(key, secretInToolLoop(`Use ${secret} and ${other}.`, 1))
    await memory.append(key, [user(`Was it ${other} or ${secret}?`)])
    const all = await placeholdersIn(memory, key)
    const [first, second] = all
    expect(all).toEqual([first, second, first, second, first, second, first, second, second, first])
    expect(new Set(all).size).toBe(2)
  })

  verifies('X-08', 'is replaced by the value in prompts of its own session and of no other', async () => {
    await using memory = await open()
    await memory.append(key, [
      user(`My key is ${secret}. Remember it.`),
      assistant('I will.'),
      user('Which key do I use?'),
    ])
    const [placeholder] = await placeholdersIn(memory, key)
    for (const provider of ['openai', 'anthropic'] as const)
      expect(JSON.stringify((await memory.context(key, { provider: provider as 'openai' })).messages)).toContain(
        `My key is ${secret}.`,
      )
    // Knowing a placeholder does not reveal its value.
    for (const session of ['acme:bob', 'other:ann', 'acme']) {
      await memory.append(session, [user(`Tell me the key: ${placeholder}`)])
      const shown = await memory.context(session)
      expect([findSecrets(shown.text), findSecrets(JSON.stringify(shown.messages))]).toEqual([[], []])
      expect(shown.text).toContain(placeholder)
    }
    await memory.remember('acme', { category: 'domain', key: 'key', value: `the key is ${secret}` })
    expect(findSecrets((await memory.context('acme:bob')).text)).toEqual([])
  })

  verifies('X-08', 'with policy hide › is never replaced', async () => {
    await using memory = await open({ secrets: 'hide' })
    await memory.append(key, [user(`My key is ${secret}. Remember it.`)])
    const shown = await memory.context(key)
    expect([findSecrets(shown.text), findSecrets(JSON.stringify(shown.messages))]).toEqual([[], []])
    expect(shown.text).toMatch(/My key is ⟨secret:\d+⟩\. Remember it\./)
  })

  verifies('X-08', 'stands for secrets in a trace, both of messages and of the query', async () => {
    await using memory = await open()
    await memory.append(key, [user(`My key is ${secret}.`), assistant('Noted.')])
    const trace = JSON.stringify(await memory.trace(key, { query: `Is ${other} my key, or ${secret}?` }))
    expect([trace.includes('⟨secret:'), findSecrets(trace)]).toEqual([true, []])
  })

  verifies('X-08', 'is no longer replaced after its session or scope was forgotten or the process ended', async () => {
    const file = fresh()
    const memory = await open({ file })
    const contextText = async (asked: Memory, placeholder = ''): Promise<string> => {
      await asked.append(key, [user(`Which one is ${placeholder}?`)])
      return (await asked.context(key)).text
    }
    for (const target of [{ key }, { scope: 'acme' }]) {
      await memory.append(key, [user(`My key is ${secret}.`)])
      const [placeholder] = await placeholdersIn(memory, key)
      expect(await contextText(memory, placeholder)).toContain(secret)
      await memory.forget(target)
      expect(await contextText(memory, placeholder)).toBe(`User: Which one is ${placeholder}?`)
      await memory.forget({ key })
    }
    await memory.append(key, [user(`My key is ${secret}.`)])
    await memory.close()
    await using reopened = await open({ file })
    const [placeholder] = await placeholdersIn(reopened, key)
    expect(await contextText(reopened, placeholder)).toBe(
      `User: My key is ${placeholder}.\n\nUser: Which one is ${placeholder}?`,
    )
  })

  verifies(
    ['X-08', 'X-01'],
    'replaced by long values › keeps the context inside the budget by the exact count',
    async () => {
      const long = namedSecrets.filter(({ secret: value }) => value.includes('PRIVATE KEY'))
      await using memory = await open()
      for (const [place, { text }] of [...long, ...long].entries())
        await memory.append(key, secretInToolLoop(text, place))
      await memory.append(key, [user('Which of these keys is the right one?')])
      let restored = 0
      for (const budget of [200, 500, 1_000, 2_000, 4_000, 8_000, 16_000, 64_000]) {
        const shown = await memory.context(key, { budget })
        expect(checkBudget(shown, memory.tokenizer, budget)).toEqual([])
        expect(
          checkAnthropicBudget(await memory.context(key, { budget, provider: 'anthropic' }), memory.tokenizer),
        ).toEqual([])
        restored = Math.max(restored, findSecrets(JSON.stringify(shown.messages)).length)
      }
      expect(restored).toBeGreaterThan(20)
    },
  )

  const filler = Array.from({ length: 60 }, (_, place) =>
    assistant(`Chapter ${place}. ${'The hills are green and the rivers run. '.repeat(20)}`),
  )
  /** Memory blocks of a context, without its turns. */
  const memoryText = async (memory: Memory, budget?: number): Promise<string> => {
    const { messages } = await memory.context(key, budget === undefined ? {} : { budget })
    return messages.flatMap(({ content }) => (content?.startsWith('<memory ') ? [content] : [])).join('\n')
  }

  verifies('X-08', 'is replaced by the value in the summary of its own session', async () => {
    const memory = await openMemory({ profile: 'summary', store: 'ram:', clock })
    await memory.append(key, [
      user('Hello.'),
      assistant(`The key of the server Atlas is ${secret}.`),
      ...filler,
      user('What is the key of Atlas?'),
    ])
    await memory.upkeep.whenIdle()
    const [summary] = await memory.upkeep.summaries(key)
    expect(summary?.text).toMatch(/The key of the server Atlas is ⟨secret:\d+⟩\./)
    expect(await memoryText(memory)).toContain(`The key of the server Atlas is ${secret}.`)
    await memory.close()
  })

  verifies('X-08', 'is replaced by the value in facts of its own session', async () => {
    await using memory = await open({ budget: 9_000 })
    await memory.append(key, [
      user('Hello.'),
      user(`Remember that the key of my server Atlas is ${secret}.`),
      ...filler,
      user('What is the key of Atlas?'),
    ])
    await memory.upkeep.whenIdle()
    expect((await memory.upkeep.facts(key)).map(({ value }) => String(value))).toContainEqual(
      expect.stringMatching(/my server Atlas is ⟨secret:\d+⟩/),
    )
    const facts = (await memoryText(memory)).split('## Summary')[0] ?? ''
    expect([facts.includes(secret), facts.includes('⟨secret:')]).toEqual([true, false])
  })

  verifies(['X-08', 'A-08'], 'is replaced by the value in long-term memory of its own session', async () => {
    let time = now
    await using memory = await openMemory({ profile: 'agent', store: 'ram:', clock: () => time })
    await memory.append(key, [
      user(`The key of the server Atlas is ${secret}.`),
      ...filler,
      user('What is the key of Atlas?'),
    ])
    time += 120_000
    await memory.sweep(time)
    await memory.upkeep.whenIdle()
    const shown = await memoryText(memory, Math.floor((await memory.context(key)).ledger.history / 0.8))
    expect(shown).toContain('[LONG-TERM MEMORY]\n[data] The key of the server Atlas is ')
    expect([shown.includes(secret), shown.includes('⟨secret:')]).toEqual([true, false])
  })
})

const day = 24 * 3_600_000
const placeholderIn = (text = ''): string => /⟨secret:\d+⟩/.exec(text)?.[0] ?? ''
const contextText = async (memory: Memory, of = key): Promise<string> => (await memory.context(of)).text

describe('the value of a secret', () => {
  for (const isSwept of [false, true])
    verifies('X-08', `is deleted when its session ${isSwept ? 'is swept' : 'expires'}`, async () => {
      let time = now
      await using memory = await openMemory({
        profile: { ...profiles.support, durability: 'durable' },
        store: 'ram:',
        clock: () => time,
      })
      const [stored] = await memory.append(key, [user('My password is hunter2abc.')])
      const placeholder = placeholderIn(stored?.content)
      expect([stored?.content, await contextText(memory)]).toEqual([
        `My password is ${placeholder}.`,
        '[RECENT MESSAGES]\n\nUser: My password is hunter2abc.',
      ])
      time += 2 * day
      if (isSwept) await memory.sweep(time)
      await memory.append(key, [user(`What is ${placeholder}?`)])
      expect(await contextText(memory)).toBe(`[RECENT MESSAGES]\n\nUser: What is ${placeholder}?`)
      // Stated again, it is available again.
      await memory.append(key, [user('My password is hunter3abc.')])
      expect(await contextText(memory)).toContain('My password is hunter3abc.')
    })

  verifies(
    ['X-08', 'X-05'],
    'stays available when another message is forgotten, and is deleted with its own',
    async () => {
      await using memory = await openMemory({ store: 'ram:', clock })
      const [first] = await memory.append(key, [
        user('My password is hunter2abc.'),
        user('My other password is hunter4abc.'),
        user('By the way, I like cats a lot.'),
      ])
      await memory.forget({ key, messageId: 'm3' })
      expect(await contextText(memory)).toBe(
        'User: My password is hunter2abc.\n\nUser: My other password is hunter4abc.',
      )
      await memory.forget({ key, messageId: 'm1' })
      const placeholder = placeholderIn(first?.content)
      await memory.append(key, [user(`What is ${placeholder}?`)])
      expect(await contextText(memory)).toBe(`User: My other password is hunter4abc.\n\nUser: What is ${placeholder}?`)
    },
  )

  verifies(['X-08', 'X-05'], 'stays available while another message contains it', async () => {
    await using memory = await openMemory({ store: 'ram:', clock })
    await memory.append(key, [user('My password is hunter2abc.'), user('Again: my password is hunter2abc.')])
    await memory.forget({ key, messageId: 'm1' })
    expect(await contextText(memory)).toBe('User: Again: my password is hunter2abc.')
  })

  verifies(
    ['X-08', 'X-05'],
    'stays available when the text to forget occurs nowhere or only in another session',
    async () => {
      await using memory = await openMemory({ store: 'ram:', clock })
      for (const session of ['acme:ann', 'acme:bob'])
        await memory.append(session, [user('My password is hunter2abc.'), user('I like cats a lot.')])
      expect((await memory.forget({ scope: 'acme', text: 'nobody says this' })).sessions).toEqual([])
      for (const session of ['acme:ann', 'acme:bob']) expect(await contextText(memory, session)).toContain('hunter2abc')
      await memory.forget({ key: 'acme:bob' })
      expect(await contextText(memory)).toContain('hunter2abc')
      await memory.forget({ scope: 'acme', text: 'cats' })
      expect(await contextText(memory)).toBe('User: My password is hunter2abc.')
    },
  )
})

describe('forgetting a secret by its text', () => {
  for (const text of ['hunter2xyz', 'HUNTER2XYZ', 'unter2xy'])
    verifies(['X-05', 'X-08'], `${text} › deletes the message that contains it`, async () => {
      await using memory = await openMemory({ store: 'ram:', clock })
      await memory.append(key, [
        user('My password is hunter2xyz.'),
        assistant('Noted.'),
        user('My other password is hunter4abc.'),
      ])
      await memory.append('acme:bob', [user('My password is hunter9xyz.')])
      expect((await memory.forget({ scope: 'acme', text })).sessions).toEqual([{ key, entries: ['m1'] }])
      expect((await memory.context(key)).text).toBe('Assistant: Noted.\n\nUser: My other password is hunter4abc.')
      expect((await memory.context('acme:bob')).text).toBe('User: My password is hunter9xyz.')
    })
})
