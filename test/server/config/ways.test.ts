import { describe, expect, it } from 'vitest'
import { profiles } from '../../../src/profiles/index.ts'
import { waysOf } from '../../../src/server/config/ways.ts'
import { verifies } from '../../requirements/verifies.ts'

describe('the ways of remembering', () => {
  it('are those of the thread profile when nothing is said', () =>
    expect(waysOf({})).toEqual({ scope: profiles.thread, session: profiles.thread, templates: {} }))

  verifies('T-16', 'leave sessions out when they are turned off', () =>
    expect(waysOf({ sessions: false, profile: 'support' })).toEqual({
      scope: profiles.thread,
      session: undefined,
      templates: {},
    }),
  )

  it('keep tenants where sessions are kept, unless those live in RAM', () => {
    expect(waysOf({ profile: 'summary' }).scope.name).toBe('summary')
    expect(waysOf({ profile: 'support' }).scope.name).toBe('thread')
    expect(waysOf({ profile: 'support', tenantProfile: 'agent' }).scope.name).toBe('agent')
  })

  verifies(['T-08', 'T-12'], 'have every limit of a profile as an option, and leave the others as they are', () => {
    const lifetime = {
      idle: '2h',
      age: '3d',
      messages: 500,
      bytes: 1_000_000,
      sessionsPerScope: 10,
      whenFull: 'refuse',
    }
    expect(waysOf({ profile: 'support', profiles: { support: { extends: 'support', lifetime } } }).session).toEqual({
      ...profiles.support,
      lifetime: {
        idle: 7_200_000,
        age: 259_200_000,
        messages: 500,
        bytes: 1_000_000,
        sessionsPerScope: 10,
        whenFull: 'refuse',
      },
    })
    expect(
      waysOf({ profile: 'small', profiles: { small: { extends: 'support', lifetime: { messages: 50 } } } }).session
        ?.lifetime,
    ).toEqual({
      idle: 86_400_000,
      age: 604_800_000,
      messages: 50,
      bytes: 10_000_000,
      sessionsPerScope: 100,
      whenFull: 'evict',
    })
  })

  it('may be whole profiles, named by where they stand', () => {
    const { name: _, ...whole } = profiles.summary
    expect(waysOf({ profile: 'mine', profiles: { mine: whole } }).session).toEqual({
      ...profiles.summary,
      name: 'mine',
    })
  })

  it('take the budget of the server for its profile alone, and the secret policy for all', () => {
    const ways = waysOf({
      profile: 'support',
      budget: 500,
      secrets: 'hide',
      templates: { own: { profile: 'summary' } },
    })
    expect(
      [ways.session, ways.scope, ways.templates.own?.profile].map((profile) => [profile?.budget, profile?.secrets]),
    ).toEqual([
      [500, 'hide'],
      [16_000, 'hide'],
      [3_000, 'hide'],
    ])
  })

  verifies('T-17', 'have templates: a profile, a lifetime, first words and a budget', () => {
    const templates = { sales: { profile: 'summary', idle: 1, age: 2, preamble: 'Sell.', budget: 900 }, plain: {} }
    expect(waysOf({ profile: 'support', templates }).templates).toEqual({
      sales: {
        profile: { ...profiles.summary, name: 'summary+sales', budget: 900 },
        idle: 1,
        age: 2,
        preamble: 'Sell.',
      },
      plain: { profile: profiles.support },
    })
  })

  const known = 'ephemeral, support, summary, agent, handoff, thread'
  const wrong: readonly (readonly [config: Parameters<typeof waysOf>[0], message: string])[] = [
    [{ profile: 'nope' }, `profile is "nope"; it must be a profile or one of ${known}.`],
    [
      { tenantProfile: 'nope', profiles: { mine: { extends: 'thread' } } },
      `tenantProfile is "nope"; it must be a profile or one of ${known}, mine.`,
    ],
    [
      { templates: { a: { profile: 'constructor' } } },
      `templates.a.profile is "constructor"; it must be a profile or one of ${known}.`,
    ],
    [{ profiles: { a: { extends: 'b' } } }, `profiles.a.extends is "b"; it must be one of ${known}.`],
    [
      { profiles: { a: { extends: 'thread', budget: 0 } } },
      'profiles.a.budget is 0; it must be a whole number, 1 or more.',
    ],
    [
      { profiles: { a: { extends: 'support', lifetime: { idle: 'soon' } } } },
      'profiles.a.lifetime.idle is "soon"; it must be a number of milliseconds, or text such as 500ms, 30s, 15m, 24h or 7d.',
    ],
    [{ profiles: { a: {} } }, 'profiles.a.durability is missing; it must be one of ram, durable.'],
  ]
  for (const [config, message] of wrong)
    it(`are refused: ${JSON.stringify(config)}`, () => expect(() => waysOf(config)).toThrow(message))
})
