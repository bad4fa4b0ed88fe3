// Runs conversations through a proxy like an OpenAI client, with the full history in every request.
import { Client } from 'undici'
import { percentile } from '../../src/evaluation/statistics.ts'
import { createSentences } from '../corpus.ts'

export type LoadJob = {
  readonly origin: string
  readonly headers: Readonly<Record<string, string>>
  /** Put the session key into the path. */
  readonly keyed: boolean
  readonly stream: boolean
  readonly connections: number
  /** Conversations per connection, one after the other. */
  readonly sessions: number
  /** Turns per conversation. */
  readonly turns: number
  /** Prefix of the session names, unique per job. */
  readonly name: string
}
/** Number of requests, and median first-byte latency in milliseconds. */
export type LoadResult = { readonly requests: number; readonly firstByte: number }
type Message = { readonly role: 'user' | 'assistant'; readonly content: string }

const questions = createSentences(20_000, 9)
let questionCount = 0

async function runConversation(client: Client, job: LoadJob, path: string, latencies: number[]): Promise<void> {
  const messages: Message[] = []
  for (let turn = 0; turn < job.turns; turn++) {
    messages.push({ role: 'user', content: questions[questionCount++ % questions.length] as string })
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
      if (text === '') latencies.push(performance.now() - start)
      text += bytes.toString()
    }
    if (response.statusCode !== 200) throw new Error(`${response.statusCode} ${text}`)
    messages.push({
      role: 'assistant',
      content: job.stream ? parseStream(text) : JSON.parse(text).choices[0].message.content,
    })
  }
}

const parseStream = (text: string): string =>
  text
    .split('\n\n')
    .filter((event) => event.startsWith('data: {'))
    .map((event) => JSON.parse(event.slice(6)).choices[0]?.delta.content ?? '')
    .join('')

async function runJob(job: LoadJob): Promise<LoadResult> {
  const latencies: number[] = []
  const runConnection = async (_: unknown, connection: number): Promise<void> => {
    const client = new Client(job.origin)
    for (let session = 0; session < job.sessions; session++)
      await runConversation(
        client,
        job,
        job.keyed ? `/v1/t${connection}:${job.name}-${session}/chat/completions` : '/v1/chat/completions',
        latencies,
      )
    await client.close()
  }
  await Promise.all(Array.from({ length: job.connections }, runConnection))
  return {
    requests: latencies.length,
    firstByte: percentile(
      latencies.sort((a, b) => a - b),
      0.5,
    ),
  }
}

process.on('message', (job) => {
  if (job !== 'cpu') void runJob(job as LoadJob).then((result) => process.send?.(result))
})
process.send?.({})
