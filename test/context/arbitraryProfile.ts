import fc from 'fast-check'
import { parseProfile } from '../../src/domain/parseProfile.ts'
import { type Band, framings, type Profile, type RenderStep } from '../../src/domain/profile.ts'

const share = fc.constantFrom(0.05, 0.1, 0.3, 0.5, 0.9, 1)

const renderStep: fc.Arbitrary<RenderStep> = fc.oneof(
  fc.constantFrom<RenderStep>(
    { as: 'whole' },
    { as: 'squeeze' },
    { as: 'uncomment' },
    { as: 'digest' },
    { as: 'sections' },
    { as: 'json' },
    { as: 'fit' },
  ),
  fc
    .tuple(share, fc.constantFrom<RenderStep>({ as: 'whole' }, { as: 'digest' }, { as: 'fit' }))
    .map(([upTo, step]): RenderStep => ({ ...step, upTo })),
  fc.integer({ min: 1, max: 200 }).map((characters): RenderStep => ({ as: 'clip', characters })),
  fc.integer({ min: 1, max: 200 }).map((tokens): RenderStep => ({ as: 'fit', tokens })),
)

const claim: fc.Arbitrary<Band['claim']> = fc.oneof(
  fc.integer({ min: 1, max: 6 }).map((first) => ({ first })),
  fc.tuple(fc.integer({ min: 1, max: 40 }), fc.boolean()).map(([last, uncovered]) => ({ last, uncovered })),
  fc
    .tuple(fc.integer({ min: 1, max: 3_000 }), fc.boolean())
    .map(([lastTokens, uncovered]) => ({ lastTokens, uncovered })),
  fc
    .tuple(
      fc.constantFrom(0.1, 0.3),
      fc.constantFrom(0.5, 1),
      share,
      fc.constantFrom(0, 1_000, 8_000),
      share,
      share,
      share,
    )
    .map(([low, high, all, budget, question, statement, otherwise]) => ({
      tail: { low, high, keepAll: all, smallBudget: { budget, question, statement, otherwise } },
    })),
  fc.constant({ rest: true as const }),
  fc.integer({ min: 1, max: 60 }).map((limit) => ({ recalled: { limit } })),
  fc
    .tuple(
      fc.constantFrom('summary' as const, 'fact' as const, 'knowledge' as const, 'item' as const),
      fc.option(fc.integer({ min: 1, max: 5 }), { nil: undefined }),
    )
    .map(([kind, top]) => ({ kind, ...(top === undefined ? {} : { top }) })),
)

const band: fc.Arbitrary<Omit<Band, 'name'>> = fc
  .record(
    {
      claim,
      renderings: fc.array(renderStep, { minLength: 1, maxLength: 4 }),
      priority: fc.integer({ min: 1, max: 9 }),
      renderAs: fc.constantFrom('turns' as const, 'block' as const),
      heading: fc.constantFrom('## Heading', '[X]', '--- Recent Exchange ---', '日本', '|', '-'),
      label: fc.constantFrom('(Past) ', '> ', 'é ', '| '),
      share: fc.oneof(share, fc.constant({ withCode: 0.6, without: 0 })),
      maxShare: fc.oneof(share, fc.constant({ budget: 500, upTo: 1, beyond: 0.05 })),
      maxTokens: fc.integer({ min: 1, max: 2_000 }),
      maxMisses: fc.integer({ min: 0, max: 8 }),
      volatile: fc.boolean(),
    },
    { requiredKeys: ['claim', 'renderings', 'priority', 'renderAs'] },
  )
  .map((band) => ('kind' in band.claim || 'recalled' in band.claim ? { ...band, renderAs: 'block' as const } : band))

/** Generates valid profiles: bands of every kind, in any order, with any limits. */
export const arbitraryProfile: fc.Arbitrary<Profile> = fc
  .tuple(
    fc.array(band, { minLength: 1, maxLength: 6 }),
    fc.constantFrom(...framings),
    fc.option(fc.constantFrom(16, 100, 4_096), { nil: undefined }),
  )
  .map(([bands, framing, cap]) => {
    // A profile may have one band that takes the rest.
    const restBand = bands.findIndex((band) => 'rest' in band.claim)
    const namedBands = bands
      .filter((band, at) => !('rest' in band.claim) || at === restBand)
      .map((band, at): Band => ({ ...band, name: `band ${at}` }))
    return parseProfile({
      ...{
        name: 'any',
        durability: 'ram',
        budget: 1_000,
        tokenizer: 'exact',
        framing,
        scopes: ['session', 'scope'],
        bands: namedBands,
        upkeep: [],
      },
      ...{ secrets: 'mask', knowledgePolicy: { user: 'yes', assistant: 'ask', tool: 'no' } },
      ...(cap === undefined ? {} : { maxMessageTokens: cap }),
      lifetime: { whenFull: 'refuse' },
    })
  })
