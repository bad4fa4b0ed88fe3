import { describe, expect, it } from 'vitest'
import { MemoryError } from '../../src/domain/error.ts'
import { parseProfile } from '../../src/domain/parseProfile.ts'
import { profiles } from '../../src/profiles/index.ts'

const { thread } = profiles

function parseError(value: unknown): string {
  try {
    parseProfile(value)
    return 'accepted'
  } catch (error) {
    return error instanceof MemoryError ? `${error.code}: ${error.message}` : String(error)
  }
}

describe('parseProfile', () => {
  it.each(Object.values(profiles))('accepts the built-in profile $name after a JSON round trip', (profile) => {
    expect(parseProfile(JSON.parse(JSON.stringify(profile)))).toEqual(profile)
  })

  it('names the invalid field and its valid values', () => {
    expect(parseError({ ...thread, budget: '16k' })).toBe(
      'bad-profile: profile.budget is "16k"; it must be a whole number, 1 or more.',
    )
    expect(parseError({ ...thread, durability: 'disk' })).toBe(
      'bad-profile: profile.durability is "disk"; it must be one of ram, durable.',
    )
    expect(parseError({ ...thread, framing: undefined })).toBe(
      'bad-profile: profile.framing is missing; it must be one of silent, open, sections.',
    )
    expect(parseError({ ...thread, budgte: 5 })).toContain(
      'bad-profile: Unknown field profile.budgte. Use one of: name, durability, budget,',
    )
    expect(parseError('thread')).toContain('profile is "thread"; it must be an object with name,')
    expect(parseError({ ...thread, bands: [] })).toBe(
      'bad-profile: profile.bands is []; it must be a list with at least 1 entry.',
    )
  })

  it('validates bands and their renderings', () => {
    const [band] = thread.bands
    const errorWith = (change: object) => parseError({ ...thread, bands: [{ ...band, ...change }] })
    expect(errorWith({ renderings: [{ as: 'whole' }, { as: 'shrink' }] })).toContain(
      'profile.bands[0].renderings[1].as is "shrink"; it must be one of whole, squeeze,',
    )
    expect(errorWith({ renderings: [{ as: 'clip' }] })).toBe(
      'bad-profile: profile.bands[0].renderings[0].characters is missing; it must be a whole number, 1 or more.',
    )
    expect(errorWith({ claim: {} })).toContain(
      'profile.bands[0].claim is {}; it must be an object with one of first, lastTokens,',
    )
    expect(errorWith({ maxShare: 1.5 })).toBe(
      'bad-profile: profile.bands[0].maxShare is 1.5; it must be a number above 0 up to 1, a part of the budget.',
    )
    expect(errorWith({ renderAs: 'turns' })).toContain('profile.bands[0].renderAs is "turns"; it must be block')
    expect(errorWith({ heading: '/x' })).toContain('must be one line that begins with neither white space nor a slash')
    expect(parseError({ ...thread, bands: [band, band] })).toContain(
      'profile.bands[1].name is "facts"; it must be different from the names of the other bands',
    )
  })
})
