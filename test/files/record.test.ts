import { describe, expect } from 'vitest'
import type { Item } from '../../src/domain/entry.ts'
import { filesKey } from '../../src/domain/key.ts'
import { noExpiry } from '../../src/domain/session.ts'
import { type FileRecord, readRecords, recordId, toItem } from '../../src/files/record.ts'
import { ramStore } from '../../src/stores/ram.ts'
import { verifies } from '../requirements/verifies.ts'
import { createFiles } from './fileServiceFixture.ts'

const key = filesKey('acme')
const upload = { name: 'a.txt', type: 'text/plain', bytes: Buffer.from('Refunds take ten days.') }

const forgeries: readonly (readonly [what: string, forge: (record: FileRecord) => unknown])[] = [
  ['a record that is null', () => null],
  ['a record that is a list', () => []],
  ['no metadata', ({ info: _, ...record }) => record],
  ['no runs', ({ runs: _, ...record }) => record],
  ['runs that are no ranges', (record) => ({ ...record, runs: [null] })],
  ['endless runs', (record) => ({ ...record, runs: [[1, 2 ** 40]] })],
  [
    'many runs',
    (record) => ({ ...record, runs: Array.from({ length: 9 }, (_, at) => [1 + at * 20_000, 20_000 * (at + 1)]) }),
  ],
  ['a reversed run', (record) => ({ ...record, runs: [[2, 1]] })],
  ['half a run', (record) => ({ ...record, runs: [[1]] })],
  [
    'runs that overlap',
    (record) => ({
      ...record,
      runs: [
        [1, 1],
        [1, 1],
      ],
    }),
  ],
  ['no order', (record) => ({ ...record, order: null })],
  ['another id', (record) => ({ ...record, info: { ...record.info, id: 'other' } })],
  ['an unknown status', (record) => ({ ...record, info: { ...record.info, status: 'constructor' } })],
  ['a number as its name', (record) => ({ ...record, info: { ...record.info, name: 5 } })],
  ['an unknown field', (record) => ({ ...record, more: 1 })],
]

describe('the record of a file', () => {
  verifies('R-04', 'that was forged › is left out, and other files stay usable', async () => {
    const store = ramStore()
    const files = createFiles(store)
    const { id } = await files.add('acme', upload)
    const [genuine] = readRecords(await store.readHead(key, 0))
    const contents = [...forgeries.map(([, forge]) => JSON.stringify(forge(genuine as FileRecord))), 'constructor', '']
    for (const content of contents) {
      const { epoch } = await store.readHead(key, 0)
      const forged: Item = { ...toItem(genuine as FileRecord), id: recordId('forged'), content }
      await store.commit({ key, at: 1_000, epoch, append: [], put: [forged], drop: [], expiresAt: noExpiry })
      expect([content, (await files.list('acme')).items.map((file) => file.id)]).toEqual([content, [id]])
      expect(await files.text('acme', id)).toBe('Refunds take ten days.')
    }
    expect(await files.remove('acme', 'forged')).toBe(false)
    expect(await files.remove('acme', id)).toBe(true)
    expect((await store.readHead(key, 0)).derived).toEqual([])
    await files.close()
  })
})
