/** Byte order marks. */
const byteOrderMarks: readonly (readonly [encoding: string, ...mark: readonly number[]])[] = [
  ['utf-8', 0xef, 0xbb, 0xbf],
  ['utf-16le', 0xff, 0xfe],
  ['utf-16be', 0xfe, 0xff],
]

/** Bytes examined by `isTextLike`. */
const textSampleBytes = 65_536
/** Bytes examined for UTF-16 without a byte order mark. */
const utf16SampleBytes = 1_024

/**
 * Decodes text in the encoding of its byte order mark, otherwise in `charset`, otherwise in UTF-16 if it looks like it,
 * otherwise in UTF-8. Invalid bytes become U+FFFD; line ends become LF.
 *
 * @example
 * decodeText(Buffer.from('\ufeffcafé\r\n')) // 'café\n'
 */
export function decodeText(bytes: Uint8Array, charset?: string): string {
  const marked = byteOrderMarks.find(([, ...mark]) => mark.every((byte, index) => bytes[index] === byte))?.[0]
  const decoder = createDecoder(marked ?? charset) ?? createDecoder(detectUtf16(bytes)) ?? new TextDecoder()
  return decoder.decode(bytes).replace(/\r\n?/g, '\n')
}

/** Checks for text in any encoding: at most 1 % control characters and 30 % undecodable ones. */
export function isTextLike(bytes: Uint8Array): boolean {
  // The sample may end inside a character, which adds at most one undecodable character.
  const sample = decodeText(bytes.subarray(0, textSampleBytes))
  let controls = 0
  let undecodable = 0
  for (let index = 0; index < sample.length; index++) {
    const code = sample.charCodeAt(index)
    if (code === 0xfffd) undecodable++
    else if (code < 32 && !isLayoutControl(code)) controls++
  }
  return controls <= sample.length * 0.01 && undecodable <= sample.length * 0.3
}

/** Checks for tabs, line ends, page breaks and the escape character of terminal colours. */
const isLayoutControl = (code: number): boolean => (code >= 9 && code <= 13) || code === 27

/** Detects UTF-16 without a byte order mark: in Latin text every other byte is zero. */
function detectUtf16(bytes: Uint8Array): 'utf-16le' | 'utf-16be' | undefined {
  const length = Math.min(bytes.length & ~1, utf16SampleBytes)
  let evenZeros = 0
  let oddZeros = 0
  for (let index = 0; index < length; index++) {
    if (bytes[index] !== 0) continue
    if (index % 2 === 0) evenZeros++
    else oddZeros++
  }
  const threshold = length * 0.2
  if (oddZeros > threshold && evenZeros < threshold / 4) return 'utf-16le'
  return evenZeros > threshold && oddZeros < threshold / 4 ? 'utf-16be' : undefined
}

/** Creates a decoder; returns undefined for unknown encodings, because a client may declare a wrong one. */
function createDecoder(encoding: string | undefined): TextDecoder | undefined {
  try {
    return encoding === undefined ? undefined : new TextDecoder(encoding)
  } catch {
    return undefined
  }
}
