import { useLayoutEffect, useState } from 'preact/hooks'

/** Views of the inspector. */
const viewNames = ['sessions', 'conversation', 'chat', 'memory', 'search', 'forget', 'operations'] as const
export type ViewName = (typeof viewNames)[number]

/**
 * A place in the inspector: a view, its subject (the key of a session or the name of a tenant) and its settings. The
 * address is `#/view/subject?setting=value`, so that names never reach the log of a server.
 */
export type Route = {
  readonly view: ViewName
  readonly subject: string
  readonly settings: Readonly<Record<string, string>>
}

/** Parses the fragment of an address; unknown views lead to the sessions. */
export function parseRoute(hash: string): Route {
  const [path = '', query = ''] = hash.replace(/^#\/?/, '').split(/\?(.*)/s)
  const [name = '', subject = ''] = path.split('/')
  const view = viewNames.find((known) => known === name) ?? 'sessions'
  return { view, subject: decodeSegment(subject), settings: Object.fromEntries(new URLSearchParams(query)) }
}

function decodeSegment(segment: string): string {
  try {
    return decodeURIComponent(segment)
  } catch {
    return ''
  }
}

/** Formats a place as the fragment of an address. Empty settings are left out. */
export function formatRoute(
  view: ViewName,
  subject = '',
  settings: Readonly<Record<string, string | number | undefined>> = {},
): string {
  const query = new URLSearchParams()
  for (const [name, value] of Object.entries(settings))
    if (value !== undefined && value !== '') query.set(name, String(value))
  const path = subject === '' ? view : `${view}/${encodeURIComponent(subject)}`
  return query.size === 0 ? `#/${path}` : `#/${path}?${query}`
}

/** Goes to a place, with a new entry in the browser's history. */
export function navigate(route: string): void {
  window.location.hash = route
}

/** Changes settings of the current place without a new entry in the browser's history. */
export function replaceSettings(changes: Readonly<Record<string, string | number | undefined>>): void {
  const { view, subject, settings } = parseRoute(window.location.hash)
  const route = formatRoute(view, subject, { ...settings, ...changes })
  if (route === window.location.hash) return
  window.history.replaceState(null, '', route)
  window.dispatchEvent(new HashChangeEvent('hashchange'))
}

/** The current place. */
export function useRoute(): Route {
  const [route, setRoute] = useState(() => parseRoute(window.location.hash))
  // An effect would begin after the first paint, and miss an address that changes before it.
  useLayoutEffect(() => {
    const update = (): void => setRoute(parseRoute(window.location.hash))
    window.addEventListener('hashchange', update)
    return () => window.removeEventListener('hashchange', update)
  }, [])
  return route
}

/** Changes the subject of the current place without a new entry in the browser's history. */
export function replaceSubject(subject: string): void {
  const { view, settings } = parseRoute(window.location.hash)
  window.history.replaceState(null, '', formatRoute(view, subject, settings))
  window.dispatchEvent(new HashChangeEvent('hashchange'))
}
