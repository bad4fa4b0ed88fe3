import type { Said } from '../../src/domain/entry.ts'
import { parseKey } from '../../src/domain/key.ts'
import { never } from '../../src/domain/session.ts'
import { zstd } from '../../src/stores/pack.ts'
import { ramStore } from '../../src/stores/ram.ts'

/** Weighs sessions in a process of its own, with `--expose-gc`, and prints bytes: see ram.test.ts. */
const words =
  'the order invoice arrived late again please check whether our customer number still holds because delivery to the second address failed yesterday and nobody told us when another driver will come so I would like to know what happens next and if the refund can be paid to my old account instead thank you very much for looking into this today'.split(
    ' ',
  )
let seed = 1
const next = (most: number): number => {
  seed = (seed * 48_271) % 2_147_483_647
  return seed % most
}

/** About two hundred characters as people write them, in one piece as a parser gives them. */
function chat(): string {
  let text = ''
  while (text.length < 195) text += `${words[next(words.length)]}${next(12) === 0 ? `, ${next(10_000)}` : ''} `
  return JSON.parse(JSON.stringify(text)) as string
}

const said = (content: string, place: number): Said => ({
  at: 1_800_000_000_000 + place,
  role: place % 2 === 0 ? 'user' : 'assistant',
  content,
  tokens: 45,
  lineTokens: 44,
  tokenizer: 'o200k_base',
  weight: 45,
})

function taken(): number {
  globalThis.gc?.()
  globalThis.gc?.()
  const { heapUsed, arrayBuffers } = process.memoryUsage()
  return heapUsed + arrayBuffers
}

/** What each of many sessions takes while it is used and when it is at rest, and the bytes of its text. */
export type Weight = { readonly text: number; readonly active: number; readonly idle: number }

async function weigh(sessions: number, messages: number): Promise<Weight> {
  const store = ramStore(zstd === undefined ? {} : { pack: zstd })
  const before = taken()
  let text = 0
  for (let one = 0; one < sessions; one++) {
    const key = parseKey(`tenant${one % 100}:+1555${1_000_000 + one}`)
    const change = { key, at: 1_800_000_000_000, epoch: 0, put: [], drop: [], expiresAt: never }
    await store.commit({ ...change, append: [] })
    for (let place = 0; place < messages; place++) {
      const content = chat()
      text += content.length
      await store.commit({ ...change, append: [said(content, place)] })
    }
  }
  const active = taken() - before
  store.rest(never)
  const idle = taken() - before
  await store.close()
  return { text: text / sessions, active: active / sessions, idle: idle / sessions }
}

// What is made once, such as compiled code, belongs to no session.
await weigh(100, 3)
process.stdout.write(JSON.stringify({ empty: await weigh(20_000, 0), chat: await weigh(300, 40) }))
