const integers = new Intl.NumberFormat('en')
const compact = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 })
const dateTimes = new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium', timeStyle: 'medium' })
const shortTimes = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit' })
const shortDates = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short' })

export const formatNumber = (value: number): string => integers.format(Math.round(value))

/** A number of at most five characters, such as `12.4K`. */
export const formatCompact = (value: number): string => compact.format(value)

export const formatPercent = (share: number): string =>
  share > 0 && share < 0.005 ? '<1 %' : `${Math.round(share * 100)} %`

/** A count with its noun: `1 message`, `2 messages`. */
export const formatCount = (count: number, one: string, many = `${one}s`): string =>
  `${formatNumber(count)} ${count === 1 ? one : many}`

export const formatTime = (at: number): string => dateTimes.format(at)

/** Hours and minutes. */
export const formatClock = (at: number): string => shortTimes.format(at)

/** A day of this or the last year: `6 Nov`. */
export const formatDate = (at: number): string => shortDates.format(at)

/** The time of today's events, the date of others. */
export function formatShortTime(at: number, now = Date.now()): string {
  const isToday = new Date(at).toDateString() === new Date(now).toDateString()
  return isToday ? shortTimes.format(at) : shortDates.format(at)
}

const units = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['min', 60_000],
  ['s', 1_000],
] as const

/** The two largest units of a duration: `3 d 4 h`, `12 min 5 s`. */
export function formatDuration(milliseconds: number): string {
  const parts: string[] = []
  let rest = Math.max(0, milliseconds)
  for (const [unit, size] of units) {
    const count = Math.floor(rest / size)
    rest -= count * size
    if (count > 0) parts.push(`${count} ${unit}`)
    else if (parts.length > 0) break
    if (parts.length === 2) break
  }
  return parts.length === 0 ? '0 s' : parts.join(' ')
}

/** A duration in milliseconds, or in seconds from one second on. */
export const formatLatency = (milliseconds: number): string =>
  milliseconds < 1_000
    ? `${milliseconds > 0 && milliseconds < 10 ? milliseconds.toFixed(1) : Math.round(milliseconds)} ms`
    : `${(milliseconds / 1_000).toFixed(1)} s`

export const formatAge = (at: number, now = Date.now()): string => {
  const [first] = formatDuration(now - at).split(/(?<=[a-z]) /)
  return now - at < 1_000 ? 'now' : `${first} ago`
}

export function formatBytes(bytes: number): string {
  if (bytes < 1_000) return `${bytes} B`
  if (bytes < 1_000_000) return `${(bytes / 1_000).toFixed(1)} kB`
  return `${(bytes / 1_000_000).toFixed(1)} MB`
}

/** US dollars with as many digits as a small amount needs. */
export const formatDollars = (dollars: number): string => {
  if (dollars > 0 && dollars < 0.0001) return '<$0.0001'
  return `$${dollars === 0 ? '0' : Math.abs(dollars) < 1 ? dollars.toFixed(4) : dollars.toFixed(2)}`
}

/** A stored value as text. */
export const formatValue = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value))

/** Number of the token `--series-N` that colours the item at an index. */
export const seriesIndex = (index: number): number => 1 + (index % 6)

export const capitalise = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1)
