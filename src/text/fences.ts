/** A line of a text with its place, without its line break; `fence` says whether it opens, closes or lies inside fenced code. */
export type FencedLine = {
  readonly start: number
  readonly end: number
  readonly fence: 'none' | 'open' | 'inside' | 'close'
  /** The language named where the block was opened, in lower case. */
  readonly language: string
}

/** The lines of a text, with what is known of ``` and ~~~ blocks; a block nobody closes goes on to the end. */
export function linesOf(text: string): FencedLine[] {
  const lines: FencedLine[] = []
  let open: Marker | undefined
  for (let start = 0; start <= text.length; ) {
    const newline = text.indexOf('\n', start)
    const end = newline < 0 ? text.length : newline
    const marker = markerOf(text, start, end)
    const language = open?.language ?? marker?.language ?? ''
    if (open === undefined) {
      lines.push({ start, end, fence: marker === undefined ? 'none' : 'open', language })
      open = marker
    } else if (marker !== undefined && closes(marker, open)) {
      lines.push({ start, end, fence: 'close', language })
      open = undefined
    } else lines.push({ start, end, fence: 'inside', language })
    start = end + 1
  }
  return lines
}

type Marker = { readonly symbol: string; readonly length: number; readonly info: string; readonly language: string }

const closes = (marker: Marker, open: Marker): boolean =>
  marker.symbol === open.symbol && marker.length >= open.length && marker.info === ''

function markerOf(text: string, start: number, end: number): Marker | undefined {
  let at = start
  while (at < end && isBlank(text.charCodeAt(at))) at++
  const symbol = text.charAt(at)
  if (symbol !== '`' && symbol !== '~') return undefined
  const first = at
  while (at < end && text.charAt(at) === symbol) at++
  if (at - first < 3) return undefined
  const info = text.slice(at, end).trim()
  // ```like this``` is code inside a line.
  if (symbol === '`' && info.includes('`')) return undefined
  return { symbol, length: at - first, info, language: languageOf(info) }
}

const isBlank = (code: number): boolean => code === 32 || code === 9

/** `ts`, `{.python}`, `js title="a"` and `src/a.go` all name a language. */
function languageOf(info: string): string {
  const name = /^[{.]{0,2}([\w+#./-]{1,200})/.exec(info)?.[1] ?? ''
  return name.slice(name.lastIndexOf('.') + 1).toLowerCase()
}
