import { describe, expect, it } from 'vitest'
import { type GraphMasker, GraphMasking } from '../../src/graph/maskedGraph.ts'
import type { GraphChange } from '../../src/graph/types.ts'
import { createSecretMasker } from '../../src/memory/secretMasker.ts'
import { chars4 } from '../../src/text/estimators.ts'
import { normalizeSecrets } from '../../src/text/secrets.ts'
import { countTurns } from '../support/slowClock.ts'

const secret = 'ghp_Ab3dE7fGh1jKlMn0pQrStUvWx2Yz34567890'
const newMasking = (): GraphMasking => new GraphMasking(createSecretMasker('hide', chars4))
/** Makes all masks equal. */
function normalize(value: unknown): unknown {
  expect(JSON.stringify(value)).not.toMatch(/ghp_Ab3|wm7Fq2/)
  return JSON.parse(normalizeSecrets(JSON.stringify(value)))
}
const mask = '⟨secret:0⟩'

describe('GraphMasking', () => {
  it('checkWorkspace › with a workspace named after a secret › throws', () => {
    expect(() => newMasking().checkWorkspace('acme')).not.toThrow()
    expect(() => newMasking().checkWorkspace(secret)).toThrow(expect.objectContaining({ code: 'bad-key' }))
  })

  it('mask › of the same secret in one workspace › is the same mask', async () => {
    const masking = newMasking()
    const [one, two] = [await masking.mask('acme', secret), await masking.mask('acme', [secret])]
    expect([one === two[0], one.includes(secret)]).toEqual([true, false])
    expect(await masking.mask('acme', 'plain')).toBe('plain')
  })

  it('maskChange › masks entities and relationships, also by the names around their values', async () => {
    const change = {
      session: `s ${secret}`,
      entities: [
        { type: 'note', id: 'wifi passwords', properties: { text: 'wm7Fq2!' } },
        { type: 'passwords', id: 'router', properties: { text: 'wm7Fq2!' } },
        { type: 'note', id: secret, properties: { text: 'plain', key: secret } },
      ],
      relationships: [
        { from: secret, to: 'ann', type: 'KNOWS' },
        { from: 'ann', to: 'router', type: 'passwords', properties: { text: 'wm7Fq2!' } },
      ],
    } as unknown as GraphChange
    expect(normalize(await newMasking().maskChange('acme', change))).toEqual({
      session: `s ${mask}`,
      entities: [
        { type: 'note', id: 'wifi passwords', properties: { text: mask } },
        { type: 'passwords', id: 'router', properties: { text: mask } },
        { type: 'note', id: mask, properties: { text: 'plain', key: mask } },
      ],
      relationships: [
        { from: mask, to: 'ann', type: 'KNOWS' },
        { from: 'ann', to: 'router', type: 'passwords', properties: { text: mask } },
      ],
    })
    expect(await newMasking().maskChange('acme', {})).toEqual({})
    const plain = { relationships: [{ from: 'a', to: 'b', type: 'KNOWS' }] } as unknown as GraphChange
    expect(await newMasking().maskChange('acme', plain)).toStrictEqual(plain)
  })

  it('maskNodes › masks nodes, observations by the name of their node, and relations', async () => {
    const graph = {
      entities: [
        { name: 'wifi password', entityType: 'note', observations: ['wm7Fq2!'] },
        { name: 'Ann', entityType: `type ${secret}`, observations: ['likes tea', `uses ${secret}`] },
      ],
      relations: [{ from: 'Ann', to: secret, relationType: 'owns' }],
    }
    expect(normalize(await newMasking().maskNodes(graph, 'acme'))).toEqual({
      entities: [
        { name: 'wifi password', entityType: 'note', observations: [mask] },
        { name: 'Ann', entityType: `type ${mask}`, observations: ['likes tea', `uses ${mask}`] },
      ],
      relations: [{ from: 'Ann', to: mask, relationType: 'owns' }],
    })
  })

  it('maskEach › of many values › lets other work run after every 200, and settled waits for it', async () => {
    const masking = newMasking()
    const turnsOf = async (count: number): Promise<number> => {
      let isDone = false
      const values = Array.from({ length: count }, (_, index) => index)
      const masked = masking
        .maskEach(values, async (value) => value + 1)
        .finally(() => {
          isDone = true
        })
      const { turns } = await countTurns(masking.settled())
      expect(isDone).toBe(true)
      expect((await masked).at(-1)).toBe(count)
      return turns
    }
    const [few, many] = [await turnsOf(200), await turnsOf(1_001)]
    expect([few <= 2, many > few + 2, many < 20]).toEqual([true, true, true])
  })

  it('settled › during masking › waits for its end, also when it fails', async () => {
    for (const isFailing of [false, true]) {
      let finish = (): void => undefined
      const pending = new Promise<void>((resume) => {
        finish = resume
      })
      const masker: GraphMasker = {
        checkKey: () => undefined,
        maskJson: async (_, value) => {
          await pending
          if (isFailing) throw new Error('failed')
          return value
        },
      }
      const masking = new GraphMasking(masker)
      await masking.settled()
      const order: string[] = []
      const running = masking.mask('acme', 'x').then(
        () => order.push('masked'),
        () => order.push('masked'),
      )
      const settled = masking.settled().then(() => order.push('settled'))
      await new Promise((resume) => setTimeout(resume, 5))
      expect(order).toEqual([])
      finish()
      await Promise.all([running, settled])
      expect(order).toEqual(['masked', 'settled'])
    }
  })
})
