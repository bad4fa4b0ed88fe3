import { describe, expect, it } from 'vitest'
import { profiles } from '../../../src/profiles/index.ts'
import { resolveProfiles } from '../../../src/server/config/profileConfig.ts'
import { verifies } from '../../requirements/verifies.ts'

describe('resolveProfiles', () => {
  it('uses the thread profile by default', () =>
    expect(resolveProfiles({})).toEqual({ scope: profiles.thread, session: profiles.thread, templates: {} }))

  verifies('T-16', 'with sessions off has no session profile', () =>
    expect(resolveProfiles({ sessions: false, profile: 'support' })).toEqual({
      scope: profiles.thread,
      session: undefined,
      templates: {},
    }),
  )

  it('uses the session profile for tenants, unless it lives in RAM', () => {
    expect(resolveProfiles({ profile: 'summary' }).scope.name).toBe('summary')
    expect(resolveProfiles({ profile: 'support' }).scope.name).toBe('thread')
    expect(resolveProfiles({ profile: 'support', tenantProfile: 'agent' }).scope.name).toBe('agent')
  })

  verifies(['T-08', 'T-12'], 'overrides single limits of a profile and keeps the others', () => {
    const lifetime = {
      idle: '2h',
      age: '3d',
      messages: 500,
      bytes: 1_000_000,
      sessionsPerScope: 10,
      whenFull: 'refuse',
    }
    expect(
      resolveProfiles({ profile: 'support', profiles: { support: { extends: 'support', lifetime } } }).session,
    ).toEqual({
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
      resolveProfiles({ profile: 'small', profiles: { small: { extends: 'support', lifetime: { messages: 50 } } } })
        .session?.lifetime,
    ).toEqual({
      idle: 86_400_000,
      age: 604_800_000,
      messages: 50,
      bytes: 10_000_000,
      sessionsPerScope: 100,
      whenFull: 'evict',
    })
  })

  it('accepts complete profiles, named by their field', () => {
    const { name: _, ...fields } = profiles.summary
    expect(resolveProfiles({ profile: 'mine', profiles: { mine: fields } }).session).toEqual({
      ...profiles.summary,
      name: 'mine',
    })
  })

  it('applies the budget to the session profile only, and the secret policy to all', () => {
    const resolved = resolveProfiles({
      profile: 'support',
      budget: 500,
      secrets: 'hide',
      templates: { own: { profile: 'summary' } },
    })
    expect(
      [resolved.session, resolved.scope, resolved.templates.own?.profile].map((profile) => [
        profile?.budget,
        profile?.secrets,
      ]),
    ).toEqual([
      [500, 'hide'],
      [16_000, 'hide'],
      [3_000, 'hide'],
    ])
  })

  verifies('T-17', 'resolves templates with profile, lifetimes, system text and budget', () => {
    const templates = { sales: { profile: 'summary', idle: 1, age: 2, preamble: 'Sell.', budget: 900 }, plain: {} }
    expect(resolveProfiles({ profile: 'support', templates }).templates).toEqual({
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
  const invalid: readonly (readonly [config: Parameters<typeof resolveProfiles>[0], message: string])[] = [
    [{ profile: 'nope' }, `profile is "nope"; it must be one of ${known}.`],
    [
      { tenantProfile: 'nope', profiles: { mine: { extends: 'thread' } } },
      `tenantProfile is "nope"; it must be one of ${known}, mine.`,
    ],
    [
      { templates: { a: { profile: 'constructor' } } },
      `templates.a.profile is "constructor"; it must be one of ${known}.`,
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
  for (const [config, message] of invalid)
    it(`refuses ${JSON.stringify(config)}`, () => expect(() => resolveProfiles(config)).toThrow(message))
})
