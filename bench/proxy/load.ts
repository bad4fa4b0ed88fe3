// Holds conversations through a proxy as OpenAI clients do: with all of its history in every request.
import { Client } from 'undici'
import { sentences } from '../corpus.ts'
import { percentile } from '../data.ts'

export type Job = {
  readonly origin: string
  readonly headers: Readonly<Record<string, string>>
  /** Whether the session is named in the address. */
  readonly keyed: boolean
  readonly stream: boolean
  readonly connections: number
  /** How many conversations each connection holds, one after the other, and how many turns they have. */
  readonly sessions: number
  readonly turns: number
  /** Tells the sessions of this job from those of others. */
  readonly name: string
}
/** How many requests were answered, and how long the first byte of an answer took, in milliseconds. */
export type Outcome = { readonly requests: number; readonly firstByte: number }
type Message = { readonly role: 'user' | 'assistant'; readonly content: string }

const questions = sentences(20_000, 9)
let asked = 0

async function converse(client: Client, job: Job, path: string, waits: number[]): Promise<void> {
  const messages: Message[] = []
  for (let turn = 0; turn < job.turns; turn++) {
    messages.push({ role: 'user', content: questions[asked++ % questions.length] as string })
    const body = JSON.stringify({ model: 'bench', stream: job.stream, messages })
    const start = performance.now()
    const response = await client.request({
      path,
      method: 'POST',
      headers: { 'content-type': 'application/json', ...job.headers },
      body,
    })
    let text = ''
    for await (const bytes of response.body as AsyncIterable<Buffer>) {
      if (text === '') waits.push(performance.now() - start)
      text += bytes.toString()
    }
    if (response.statusCode !== 200) throw new Error(`${response.statusCode} ${text}`)
    messages.push({
      role: 'assistant',
      content: job.stream ? streamed(text) : JSON.parse(text).choices[0].message.content,
    })
  }
}

const streamed = (text: string): string =>
  text
    .split('\n\n')
    .filter((event) => event.startsWith('data: {'))
    .map((event) => JSON.parse(event.slice(6)).choices[0]?.delta.content ?? '')
    .join('')

async function perform(job: Job): Promise<Outcome> {
  const waits: number[] = []
  const hold = async (_: unknown, connection: number): Promise<void> => {
    const client = new Client(job.origin)
    for (let session = 0; session < job.sessions; session++)
      await converse(
        client,
        job,
        job.keyed ? `/v1/t${connection}:${job.name}-${session}/chat/completions` : '/v1/chat/completions',
        waits,
      )
    await client.close()
  }
  await Promise.all(Array.from({ length: job.connections }, hold))
  return {
    requests: waits.length,
    firstByte: percentile(
      waits.sort((a, b) => a - b),
      0.5,
    ),
  }
}

process.on('message', (job) => {
  if (job !== 'cpu') void perform(job as Job).then((outcome) => process.send?.(outcome))
})
process.send?.({})
