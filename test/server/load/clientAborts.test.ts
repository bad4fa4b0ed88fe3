import { request } from 'node:http'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { isCampaign, seed } from '../../context/campaign.ts'
import { seededRandom } from '../../fault/random.ts'
import { createTempFolder } from '../../fault/tempFolder.ts'
import { type Behaviour, type RecordedRequest, startUpstream, type Upstream } from '../../providers/upstream.ts'
import { toLines } from '../start.ts'
import { runConcurrently } from './loadClients.ts'
import { fetchTranscript, type ServerProcess, startServerProcess } from './serverProcess.ts'

const aborts = isCampaign ? 10_000 : 500
const [sessions, clients, pieces] = [25, 20, 6]
/** Allowed bytes per request on average: cached session messages and compiled code. A leaked request takes more. */
const maxKeptBytes = isCampaign ? 1_024 : 8_192

/**
 * The moment of a client's abort: before the reply, after `after` pieces of a stalled or a continuing reply, or never.
 */
type AbortMoment = { readonly while: 'thinks' | 'waits' | 'goes on' | 'finishes'; readonly after: number }
type Step = { readonly key: string; readonly tag: string; readonly content: string; readonly moment: AbortMoment }

const piecesOf = (tag: string, count: number): string[] => Array.from({ length: count }, (_, at) => `${tag}-${at} `)
const fullReply = (tag: string): string => piecesOf(tag, pieces).join('')

/** The model server's behaviour for a step. */
const behaviourOf = ({ moment, tag }: Step): Behaviour => {
  if (moment.while === 'thinks') return { does: 'hang' }
  if (moment.while === 'waits') return { does: 'stall', pieces: piecesOf(tag, moment.after) }
  return { does: moment.while === 'goes on' ? 'babble' : 'reply', pieces: piecesOf(tag, pieces) }
}

/** Steps over several sessions; about every sixth finishes. */
function* createSteps(count: number, chance: () => number, from = 0): Iterable<Step> {
  for (let at = from; at < from + count; at++) {
    const [kindIndex, after] = [Math.floor(chance() * 6), Math.floor(chance() * (pieces + 1))]
    const moment: AbortMoment = {
      while: (['thinks', 'waits', 'waits', 'goes on', 'goes on', 'finishes'] as const)[kindIndex] ?? 'waits',
      after,
    }
    const tag = `tag${at}`
    yield { key: `acme:s${at % sessions}`, tag, content: `Step ${tag}: go on.`, moment }
  }
}

/** Sends the request, aborts at the moment and returns the text received by then. */
async function step(
  url: string,
  { key, tag, content, moment }: Step,
  arrived: Promise<RecordedRequest>,
): Promise<string> {
  let text = ''
  const outgoing = request(`${url}/v1/${key}/chat/completions`, {
    method: 'POST',
    agent: false,
    headers: { 'content-type': 'application/json' },
  })
  const closed = new Promise<void>((resolve) => outgoing.once('close', resolve))
  const abortIfReached = (): void => {
    const seen = text.split(`"${tag}-`).length - 1
    if (moment.while !== 'finishes' && seen >= moment.after) outgoing.destroy()
  }
  outgoing.on('error', () => undefined)
  outgoing.on('response', (response) => {
    response.setEncoding('utf8').on('data', (piece: string) => {
      text += piece
      abortIfReached()
    })
    response.on('error', () => undefined)
  })
  outgoing.end(JSON.stringify({ model: 'm', stream: true, messages: [{ role: 'user', content }] }))
  const received = await arrived
  if (moment.while === 'thinks') outgoing.destroy()
  await closed
  expect([moment, await received.outcome]).toEqual([moment, moment.while === 'finishes' ? 'answered' : 'hung up'])
  return text
}

/** Starts a model server that resolves a promise when each message arrives. */
async function startNotifyingModel(): Promise<Upstream & { waitFor(step: Step): Promise<RecordedRequest> }> {
  const waiting = new Map<string, { readonly step: Step; readonly resolve: (received: RecordedRequest) => void }>()
  const upstream = await startUpstream((received) => {
    const { step, resolve } = waiting.get(received.body.messages.at(-1).content) ?? expect.fail('nobody has said this')
    resolve(received)
    return behaviourOf(step)
  })
  const waitFor = (step: Step): Promise<RecordedRequest> =>
    new Promise((resolve) => void waiting.set(step.content, { step, resolve }))
  return { ...upstream, waitFor }
}

/** Measures the server once all its connections are closed. */
async function measureWhenIdle(server: ServerProcess): Promise<Awaited<ReturnType<ServerProcess['measure']>>> {
  for (let tries = 0; ; tries++) {
    const measurement = await server.measure()
    if (measurement.sockets === 0 || tries === 100) return measurement
  }
}

/** Runs the steps of each session one after the other, so that their order is known. */
async function runSteps(
  server: ServerProcess,
  model: Awaited<ReturnType<typeof startNotifyingModel>>,
  steps: Iterable<Step>,
): Promise<readonly Step[]> {
  const bySession = Map.groupBy(steps, ({ key }) => key)
  await runConcurrently(clients, bySession.values(), async (sessionSteps) => {
    for (const one of sessionSteps) {
      const text = await step(server.url, one, model.waitFor(one))
      const foreign = (text.match(/tag\d+/g) ?? []).filter((tag) => tag !== one.tag)
      expect(foreign).toEqual([])
    }
  })
  return [...bySession.values()].flat()
}

describe('clients that abort at any moment', () => {
  it('leave no connection and no memory behind; their messages are stored, partial replies are not', {
    timeout: 1_800_000,
  }, async () => {
    using folder = createTempFolder()
    await using model = await startNotifyingModel()
    await using server = await startServerProcess({
      upstream: model.url,
      profile: 'thread',
      store: `sqlite:${join(folder.path, 'aborts.db')}`,
    })
    const chance = seededRandom(seed)
    const first = await runSteps(server, model, createSteps(aborts / 5, chance))
    const before = await measureWhenIdle(server)
    const steps = [...first, ...(await runSteps(server, model, createSteps(aborts - aborts / 5, chance, aborts / 5)))]
    const after = await measureWhenIdle(server)
    expect([after.sockets, after.faults]).toEqual([0, []])
    expect((after.heapBytes - before.heapBytes) / aborts).toBeLessThan(maxKeptBytes)
    for (const [key, sessionSteps] of Map.groupBy(steps, (one) => one.key)) {
      const stored = toLines(await fetchTranscript(server.url, key))
      expect(stored.filter((line) => line.startsWith('user: '))).toEqual(
        sessionSteps.map(({ content }) => `user: ${content}`),
      )
      const whole = new Map(sessionSteps.map(({ tag, moment }) => [`assistant: ${fullReply(tag)}`, moment.while]))
      // A continuing reply may or may not have been complete when its client aborted.
      expect(stored.filter((line) => line.startsWith('assistant: ') && whole.get(line) !== 'goes on')).toEqual(
        [...whole].filter(([, moment]) => moment === 'finishes').map(([line]) => line),
      )
    }
  })
})
