import { readFileSync } from 'node:fs'
import type { MessageInput } from '../../src/index.ts'
import { assistant, user } from '../server/start.ts'
import { databaseFiles, findTraces } from '../stores/traces.ts'
import { cardNumbers, keyFormats, namedSecrets, statedSecrets } from '../text/secretFormats.ts'

/** Every secret format, in a typical sentence. */
export const secretSamples: readonly { readonly name: string; readonly secret: string; readonly text: string }[] = [
  ...keyFormats.map(({ name, secret }) => ({ name, secret, text: `Use ${secret} for it, please.` })),
  ...namedSecrets,
  ...statedSecrets,
  ...cardNumbers,
]

/** The texts of the samples, several per list. */
export const secretBatches: readonly (readonly string[])[] = Array.from(
  { length: Math.ceil(secretSamples.length / 10) },
  (_, at) => secretSamples.slice(10 * at, 10 * at + 10).map(({ text }) => text),
)

/** Substrings that identify a secret: all of it, or each long line of a PEM key. Shorter ones occur by chance. */
const probes = secretSamples.flatMap(({ secret }) =>
  secret.includes('PRIVATE KEY') ? secret.split(/\n|\\n/).filter((line) => /^[\w+/=]{32,}$/.test(line)) : [secret],
)
const distinctive = [...new Set(probes)].filter((probe) => probe.length >= 7)

/** Probes that a text contains, raw or JSON-escaped. */
export const findSecrets = (text: string): string[] =>
  distinctive.filter((probe) => text.includes(probe) || text.includes(JSON.stringify(probe).slice(1, -1)))

/** Probes in the database files, in any encoding. Short ones are searched raw only: in base64 they match by chance. */
export const storedSecrets = (file: string): string[] =>
  distinctive.filter((probe) =>
    probe.length < 12 ? readFileSync(file).includes(probe) : findTraces(probe, databaseFiles(file)).length > 0,
  )

/** A secret as it appears in a tool loop: in the question, the call's arguments, its result and the reply. */
export function secretInToolLoop(text: string, place: number): MessageInput[] {
  const id = `call${place}`
  return [
    user(text),
    {
      role: 'assistant',
      content: '',
      tool_calls: [{ id, type: 'function', function: { name: 'run', arguments: JSON.stringify({ input: text }) } }],
    },
    { role: 'tool', tool_call_id: id, content: JSON.stringify({ stdout: text, code: 0 }) },
    assistant(`I have used what you gave me:\n${text}`),
  ]
}
