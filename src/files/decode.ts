/** The encodings that begin with a mark of their own. */
const marked: readonly (readonly [encoding: string, ...mark: readonly number[]])[] = [
  ['utf-8', 0xef, 0xbb, 0xbf],
  ['utf-16le', 0xff, 0xfe],
  ['utf-16be', 0xfe, 0xff],
]

/**
 * The text of bytes: in the encoding they are marked with, else in the one that is told, else UTF-16 if they look like it, else
 * UTF-8. Bytes that mean nothing become U+FFFD, and every line ends with a line feed alone.
 *
 * @example
 * decoded(Buffer.from('\ufeffcafé\r\n')) // 'café\n'
 */
export function decoded(bytes: Uint8Array, charset?: string): string {
  const encoding = marked.find(([, ...mark]) => mark.every((byte, at) => bytes[at] === byte))?.[0]
  const decoder = decoderOf(encoding ?? charset) ?? decoderOf(wide(bytes)) ?? new TextDecoder()
  return decoder.decode(bytes).replace(/\r\n?/g, '\n')
}

/** Whether bytes are text in some encoding: few control characters, and not too much that means nothing. */
export function isTextLike(bytes: Uint8Array): boolean {
  // A character may be cut at the end of the sample: one among thousands.
  const sample = decoded(bytes.subarray(0, 65_536))
  let [controls, unknown] = [0, 0]
  for (let at = 0; at < sample.length; at++) {
    const code = sample.charCodeAt(at)
    if (code === 0xfffd) unknown++
    else if (code < 32 && !isLayout(code)) controls++
  }
  return controls <= sample.length * 0.01 && unknown <= sample.length * 0.3
}

/** Tabs, line ends, page breaks, and the escapes that colour a terminal's output. */
const isLayout = (code: number): boolean => (code >= 9 && code <= 13) || code === 27

/** UTF-16 without a mark: of Latin text every other byte is zero. */
function wide(bytes: Uint8Array): string | undefined {
  const length = Math.min(bytes.length & ~1, 1_024)
  const zeros = [0, 0] as [number, number]
  for (let at = 0; at < length; at++) if (bytes[at] === 0) zeros[(at & 1) as 0 | 1]++
  const many = length * 0.2
  if (zeros[1] > many && zeros[0] < many / 4) return 'utf-16le'
  return zeros[0] > many && zeros[1] < many / 4 ? 'utf-16be' : undefined
}

/** Nothing for a name that is no encoding: what a client says about its file may be wrong. */
function decoderOf(encoding: string | undefined): TextDecoder | undefined {
  try {
    return encoding === undefined ? undefined : new TextDecoder(encoding)
  } catch {
    return undefined
  }
}
