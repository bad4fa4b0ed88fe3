import { beforeAll, describe, expect, it } from 'vitest'
import { verifies } from '../../requirements/verifies.ts'
import { abreast, type Crowd, crowdAt, talksOf } from './crowd.ts'
import { replyTo, startEcho } from './echo.ts'
import { startStand } from './stand.ts'

const [empty, many, turns, tenants, clients] = [2_000, 300, 10, 100, 20]
/** So many sessions are more than what is at hand may take here: a server has that once, however many sessions there are. */
const atHand = 180

/** What sessions at hand hold, so that each of them has as much as the others. */
const everything = 1_000_000_000

/** Bytes: of a session in which nothing was said, of the text of one, and of one in use and at rest. */
type Weights = { readonly empty: number; readonly text: number; readonly active: number; readonly idle: number }

/** Begins sessions in which nothing is said. */
async function begin(url: string, name: string, many: number): Promise<void> {
  const keys = Array.from({ length: many }, (_, at) => `${name}${at % tenants}:e${at}`)
  await abreast(clients, keys, async (key) => {
    const response = await fetch(`${url}/api/sessions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ key }),
    })
    await response.arrayBuffer()
    expect(response.status).toBe(201)
  })
}

/** Talks in new sessions; resolves to how many letters were said in them. */
async function talkIn(crowd: Crowd, name: string, sessions: number, most = turns): Promise<number> {
  let text = 0
  for (const talks = talksOf(sessions, tenants, name); (talks[0]?.turns ?? 0) < most; ) {
    for (const said of await abreast(clients, talks, crowd.say)) text += said.length + replyTo(said).length
  }
  return text
}

/** What a session of twenty turns takes for each letter of its text. A bare Map of such messages takes 1.3 bytes. */
async function weighAtHand(): Promise<number> {
  await using echo = await startEcho()
  await using stand = await startStand({ upstream: echo.url, profile: 'support', awake: everything })
  await using crowd = crowdAt(stand.url, clients, 2)
  await talkIn(crowd, 'w', many / 2, 20)
  const warm = await stand.measure()
  const text = await talkIn(crowd, 's', many, 20)
  return ((await stand.measure()).held - warm.held) / text
}

async function weigh(): Promise<Weights> {
  await using echo = await startEcho()
  await using stand = await startStand({ upstream: echo.url, profile: 'support' })
  await using crowd = crowdAt(stand.url, clients)
  const talk = (name: string, sessions: number): Promise<number> => talkIn(crowd, name, sessions)
  // What is made once, such as compiled code, belongs to no session.
  await begin(stand.url, 'warm', 300)
  await talk('w', atHand)
  const warm = await stand.measure()
  const text = await talk('s', many)
  const [talked, rested] = [await stand.measure(), await stand.rest()]
  await talk('t', many)
  const again = await stand.rest()
  await begin(stand.url, 'empty', empty)
  const begun = await stand.measure()
  return {
    empty: (begun.held - again.held) / empty,
    text: text / many,
    active: (talked.held - warm.held) / many,
    idle: (again.held - rested.held) / many,
  }
}

describe('what a session takes of the server', () => {
  let weights: Weights
  beforeAll(async () => {
    weights = await weigh()
  })

  verifies('T-18', 'is at most 1 KB while nothing was said in it', () => {
    expect(weights.empty).toBeLessThanOrEqual(1_024)
  })

  it('is at most 2.2 times its text while it is in use, beyond what is at hand: that is bounded for all of them together', () => {
    expect(weights.active / weights.text).toBeLessThanOrEqual(2.2)
  })

  it('is at most 2.2 times its text while it is at hand', async () => {
    expect(await weighAtHand()).toBeLessThanOrEqual(2.2)
  })

  it('is no more than its text while it is at rest', () => {
    expect(weights.idle / weights.text).toBeLessThanOrEqual(1)
  })
})
