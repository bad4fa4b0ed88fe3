import { request } from 'node:http'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { campaign, seed } from '../../context/campaign.ts'
import { chanceOf } from '../../fault/random.ts'
import { newFolder } from '../../fault/tempFolder.ts'
import { type Behaviour, type Received, startUpstream, type Upstream } from '../../providers/upstream.ts'
import { abreast } from './crowd.ts'
import { type Stand, startStand, transcriptAt } from './stand.ts'

const aborts = campaign ? 10_000 : 500
const [sessions, clients, pieces] = [25, 20, 6]
/** What may stay of each on average: what was said is at hand for the next turn, and code is compiled. A request that is not let go of takes more. */
const mostKept = campaign ? 1_024 : 8_192

/** When a client hangs up: before the answer begins, after so many pieces of one that waits, or of one that goes on; or never. */
type Moment = { readonly while: 'thinks' | 'waits' | 'goes on' | 'finishes'; readonly after: number }
type Step = { readonly key: string; readonly tag: string; readonly content: string; readonly moment: Moment }

const piecesOf = (tag: string, many: number): string[] => Array.from({ length: many }, (_, at) => `${tag}-${at} `)
const wholeOf = (tag: string): string => piecesOf(tag, pieces).join('')

/** What the model server does in the moment that is told in a message. */
const behaviourOf = ({ moment, tag }: Step): Behaviour => {
  if (moment.while === 'thinks') return { does: 'hang' }
  if (moment.while === 'waits') return { does: 'stall', pieces: piecesOf(tag, moment.after) }
  return { does: moment.while === 'goes on' ? 'babble' : 'reply', pieces: piecesOf(tag, pieces) }
}

/** So many steps in several sessions; every sixth is left to finish. */
function* stepsOf(many: number, chance: () => number, from = 0): Iterable<Step> {
  for (let at = from; at < from + many; at++) {
    const [how, after] = [Math.floor(chance() * 6), Math.floor(chance() * (pieces + 1))]
    const moment: Moment = {
      while: (['thinks', 'waits', 'waits', 'goes on', 'goes on', 'finishes'] as const)[how] ?? 'waits',
      after,
    }
    const tag = `tag${at}`
    yield { key: `acme:s${at % sessions}`, tag, content: `Step ${tag}: go on.`, moment }
  }
}

/** Asks, hangs up at the moment, and resolves to what had come by then. */
async function step(url: string, { key, tag, content, moment }: Step, arrived: Promise<Received>): Promise<string> {
  let text = ''
  const asking = request(`${url}/v1/${key}/chat/completions`, {
    method: 'POST',
    agent: false,
    headers: { 'content-type': 'application/json' },
  })
  const over = new Promise<void>((resolve) => asking.once('close', resolve))
  const look = (): void => {
    const seen = text.split(`"${tag}-`).length - 1
    if (moment.while !== 'finishes' && seen >= moment.after) asking.destroy()
  }
  asking.on('error', () => undefined)
  asking.on('response', (response) => {
    response.setEncoding('utf8').on('data', (piece: string) => {
      text += piece
      look()
    })
    response.on('error', () => undefined)
  })
  asking.end(JSON.stringify({ model: 'm', stream: true, messages: [{ role: 'user', content }] }))
  const received = await arrived
  if (moment.while === 'thinks') asking.destroy()
  await over
  expect([moment, await received.over]).toEqual([moment, moment.while === 'finishes' ? 'answered' : 'hung up'])
  return text
}

/** A model server that tells when each message has reached it. */
async function startTeller(): Promise<Upstream & { expects(step: Step): Promise<Received> }> {
  const waiting = new Map<string, { readonly step: Step; readonly resolve: (received: Received) => void }>()
  const upstream = await startUpstream((received) => {
    const { step, resolve } = waiting.get(received.body.messages.at(-1).content) ?? expect.fail('nobody has said this')
    resolve(received)
    return behaviourOf(step)
  })
  const expects = (step: Step): Promise<Received> =>
    new Promise((resolve) => void waiting.set(step.content, { step, resolve }))
  return { ...upstream, expects }
}

/** What the server holds once it has noticed that everybody has gone. */
async function settled(stand: Stand): Promise<Awaited<ReturnType<Stand['measure']>>> {
  for (let tries = 0; ; tries++) {
    const taken = await stand.measure()
    if (taken.sockets === 0 || tries === 100) return taken
  }
}

/** One step after the other in each session, so that it is known in which order they were said. */
async function walk(
  stand: Stand,
  teller: Awaited<ReturnType<typeof startTeller>>,
  steps: Iterable<Step>,
): Promise<readonly Step[]> {
  const bySession = Map.groupBy(steps, ({ key }) => key)
  await abreast(clients, bySession.values(), async (own) => {
    for (const one of own) {
      const text = await step(stand.url, one, teller.expects(one))
      const foreign = (text.match(/tag\d+/g) ?? []).filter((tag) => tag !== one.tag)
      expect(foreign).toEqual([])
    }
  })
  return [...bySession.values()].flat()
}

describe('clients that hang up at any moment', () => {
  it('leave no connection and no memory behind; their messages are kept, half replies are not', {
    timeout: 1_800_000,
  }, async () => {
    using folder = newFolder()
    await using teller = await startTeller()
    await using stand = await startStand({
      upstream: teller.url,
      profile: 'thread',
      store: `sqlite:${join(folder.path, 'aborts.db')}`,
    })
    const chance = chanceOf(seed)
    const first = await walk(stand, teller, stepsOf(aborts / 5, chance))
    const before = await settled(stand)
    const steps = [...first, ...(await walk(stand, teller, stepsOf(aborts - aborts / 5, chance, aborts / 5)))]
    const after = await settled(stand)
    expect([after.sockets, after.faults]).toEqual([0, []])
    expect((after.held - before.held) / aborts).toBeLessThan(mostKept)
    for (const [key, own] of Map.groupBy(steps, (one) => one.key)) {
      const stored = (await transcriptAt(stand.url, key)).map(({ role, content }) => `${role}: ${content}`)
      expect(stored.filter((line) => line.startsWith('user: '))).toEqual(own.map(({ content }) => `user: ${content}`))
      const whole = new Map(own.map(({ tag, moment }) => [`assistant: ${wholeOf(tag)}`, moment.while]))
      // A reply that went on was complete or not when its client left; of the others it is known.
      expect(stored.filter((line) => line.startsWith('assistant: ') && whole.get(line) !== 'goes on')).toEqual(
        [...whole].filter(([, moment]) => moment === 'finishes').map(([line]) => line),
      )
    }
  })
})
