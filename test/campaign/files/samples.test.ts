import { describe, expect, it } from 'vitest'
import { mediaTypes } from '../../../src/files/kind.ts'
import { detectFormat } from '../../../src/portable/format.ts'
import { Parsers } from './parsers.ts'
import { foreignFormats, formats } from './samples.ts'

describe('the samples of hostile files', () => {
  it('of every format that is parsed › are valid', async () => {
    await using parsers = await Parsers.open()
    const refused: string[] = []
    for (const format of formats)
      await parsers
        .parse({ format, bytes: parsers.samples[format] })
        .catch((error: Error) => refused.push(`${format}: ${error.message}`))
    expect(refused).toEqual([])
  })

  it('have all kinds of files and all formats that are detected', async () => {
    await using parsers = await Parsers.open()
    expect(formats).toEqual(expect.arrayContaining(Object.keys(mediaTypes)))
    for (const format of foreignFormats) expect(detectFormat(parsers.samples[format])).toBe(format)
    for (const format of ['bundle', 'encrypted bundle'] as const)
      expect(detectFormat(parsers.samples[format])).toBe('bundle')
  })
})
