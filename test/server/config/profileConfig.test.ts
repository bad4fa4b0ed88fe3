import { describe, expect, it } from 'vitest'
import type { Profile } from '../../../src/domain/profile.ts'
import { profiles } from '../../../src/profiles/index.ts'
import { resolveProfiles } from '../../../src/server/config/profileConfig.ts'
import { verifies } from '../../requirements/verifies.ts'

/** A built-in profile as the server uses it. */
const automatic = (profile: Profile): Profile => ({ ...profile, budgetMode: 'auto' })

describe('resolveProfiles', () => {
  it('uses the thread profile by default', () => {
    const thread = automatic(profiles.thread)
    expect(resolveProfiles({})).toEqual({ scope: thread, session: thread, templates: {} })
  })

  verifies('T-16', 'with sessions off has no session profile', () =>
    expect(resolveProfiles({ sessions: false, profile: 'support' })).toEqual({
      scope: automatic(profiles.thread),
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
      ...automatic(profiles.support),
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
      budgetMode: 'fixed',
    })
  })

  it('takes a budget of the configuration, a profile or a template as fixed, and others from the context window', () => {
    const own = { extends: 'summary', budget: 900 }
    const modesFor = (config: Parameters<typeof resolveProfiles>[0]) => {
      const { session, templates } = resolveProfiles({ ...config, templates: { a: {}, b: { budget: 700 } } })
      return [session, templates.a?.profile, templates.b?.profile].map((profile) => [
        profile?.budgetMode,
        profile?.budget,
      ])
    }
    for (const budget of [undefined, 'auto'] as const) {
      const inherited = budget === undefined ? {} : { budget }
      expect(modesFor({ ...inherited, profile: 'summary' })).toEqual([
        ['auto', 3_000],
        ['auto', 3_000],
        ['fixed', 700],
      ])
      expect(modesFor({ ...inherited, profile: 'own', profiles: { own } })).toEqual([
        ['fixed', 900],
        ['fixed', 900],
        ['fixed', 700],
      ])
    }
    expect(modesFor({ budget: 500, profile: 'own', profiles: { own } })).toEqual([
      ['fixed', 500],
      ['fixed', 500],
      ['fixed', 700],
    ])
    expect(modesFor({ profile: 'own', profiles: { own: { ...own, budgetMode: 'auto' } } })[0]).toEqual(['auto', 900])
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
        profile: { ...profiles.summary, name: 'summary+sales', budget: 900, budgetMode: 'fixed' },
        idle: 1,
        age: 2,
        preamble: 'Sell.',
      },
      plain: { profile: automatic(profiles.support) },
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
