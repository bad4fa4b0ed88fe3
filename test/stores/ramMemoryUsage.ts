import type { NewMessage } from '../../src/domain/entry.ts'
import { parseKey } from '../../src/domain/key.ts'
import { noExpiry } from '../../src/domain/session.ts'
import { ramStore } from '../../src/stores/ram.ts'
import { zstdCompressor } from '../../src/stores/zstd.ts'

/** Program that measures the memory of sessions and prints it as JSON; ram.test.ts starts it with `--expose-gc`. */
const words =
  'the order invoice arrived late again please check whether our customer number still holds because delivery to the second address failed yesterday and nobody told us when another driver will come so I would like to know what happens next and if the refund can be paid to my old account instead thank you very much for looking into this today'.split(
    ' ',
  )
let seed = 1
const random = (end: number): number => {
  seed = (seed * 48_271) % 2_147_483_647
  return seed % end
}

/** Creates about 200 characters of natural text. Parsing JSON yields a flat string, as a request parser would. */
function createText(): string {
  let text = ''
  while (text.length < 195) text += `${words[random(words.length)]}${random(12) === 0 ? `, ${random(10_000)}` : ''} `
  return JSON.parse(JSON.stringify(text)) as string
}

const createMessage = (content: string, index: number): NewMessage => ({
  at: 1_800_000_000_000 + index,
  role: index % 2 === 0 ? 'user' : 'assistant',
  content,
  tokens: 45,
  lineTokens: 44,
  tokenizer: 'o200k_base',
  weight: 45,
})

function usedBytes(): number {
  globalThis.gc?.()
  globalThis.gc?.()
  const { heapUsed, arrayBuffers } = process.memoryUsage()
  return heapUsed + arrayBuffers
}

/** Bytes per session: its text, and its memory before and after compression. */
export type MemoryUsage = { readonly textBytes: number; readonly activeBytes: number; readonly idleBytes: number }

async function measure(sessions: number, messages: number): Promise<MemoryUsage> {
  const store = ramStore(zstdCompressor === undefined ? {} : { compressor: zstdCompressor })
  const before = usedBytes()
  let text = 0
  for (let session = 0; session < sessions; session++) {
    const key = parseKey(`tenant${session % 100}:+1555${1_000_000 + session}`)
    const change = { key, at: 1_800_000_000_000, epoch: 0, put: [], drop: [], expiresAt: noExpiry }
    await store.commit({ ...change, append: [] })
    for (let index = 0; index < messages; index++) {
      const content = createText()
      text += content.length
      await store.commit({ ...change, append: [createMessage(content, index)] })
    }
  }
  const active = usedBytes() - before
  store.capabilities.memoryLimit.compressIdle(noExpiry)
  const idle = usedBytes() - before
  await store.close()
  return { textBytes: text / sessions, activeBytes: active / sessions, idleBytes: idle / sessions }
}

// Warms up, so that one-time allocations such as compiled code are not counted.
await measure(100, 3)
process.stdout.write(JSON.stringify({ empty: await measure(20_000, 0), chat: await measure(300, 40) }))
