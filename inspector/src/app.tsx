import type { ComponentType } from 'preact'
import { useEffect, useMemo, useState } from 'preact/hooks'
import { ApiError, readAccess, saveApiKey } from './api/client.ts'
import { type ConnectionState, LiveUpdates } from './api/events.ts'
import type { Access } from './api/types.ts'
import { AppProvider } from './appContext.ts'
import { ErrorState, LoadingState } from './components/states.tsx'
import { formatRoute, type Route, useRoute, type ViewName } from './router.ts'
import { SignIn } from './signIn.tsx'
import { views } from './views.ts'

/** The application: signs in if the server requires it, then shows the navigation and a view. */
export function App() {
  const [access, setAccess] = useState<Access | 'loading' | 'signed-out' | ApiError>('loading')
  const connect = async (): Promise<void> => {
    try {
      setAccess(await readAccess())
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
      setAccess(error.status === 401 ? 'signed-out' : error)
      if (error.status === 0) setTimeout(() => void connect(), 2_000)
    }
  }
  useEffect(() => void connect(), [])
  if (access === 'loading') return <LoadingState rows={3} />
  if (access === 'signed-out') return <SignIn onSignIn={setAccess} />
  if (access instanceof ApiError) return <ErrorState message={access.message} onRetry={() => void connect()} />
  return <Shell access={access} onSignOut={() => setAccess('signed-out')} />
}

function Shell({ access, onSignOut }: { access: Access; onSignOut: () => void }) {
  const route = useRoute()
  const live = useMemo(() => new LiveUpdates(), [access])
  useEffect(() => {
    live.start()
    return () => live.stop()
  }, [live])
  const app = useMemo(() => ({ access, live }), [access, live])
  const signOut = (): void => {
    saveApiKey(undefined)
    onSignOut()
  }
  return (
    <AppProvider value={app}>
      <button type="button" class="skip" onClick={focusContent}>
        Skip to content
      </button>
      <div class="shell">
        <Navigation route={route} live={live} onSignOut={access.hasKey ? signOut : undefined} />
        <main id="content" tabIndex={-1}>
          <CurrentView route={route} />
        </main>
      </div>
    </AppProvider>
  )
}

/** Moves the focus without changing the address, which names the view. */
function focusContent(): void {
  document.getElementById('content')?.focus()
}

/** Loads a view with its first use. */
function CurrentView({ route }: { route: Route }) {
  const [loaded, setLoaded] = useState<{ view: ViewName; Component: ComponentType<{ route: Route }> }>()
  const [error, setError] = useState('')
  const [attempt, setAttempt] = useState(0)
  const { view } = route
  useEffect(() => {
    let isCurrent = true
    setError('')
    views[view].load().then(
      (Component) => isCurrent && setLoaded({ view, Component }),
      () => isCurrent && setError('This view could not be loaded.'),
    )
    return () => {
      isCurrent = false
    }
  }, [view, attempt])
  useEffect(() => {
    document.title = `${views[view].title} · Threadkeep`
  }, [view])
  if (error !== '') return <ErrorState message={error} onRetry={() => setAttempt(attempt + 1)} />
  if (loaded?.view !== view) return <LoadingState />
  const { Component } = loaded
  const { isFilteredBySubject = false } = views[view]
  return <Component key={isFilteredBySubject ? view : `${view} ${route.subject}`} route={route} />
}

/** The subject that another view takes over, so that a reader stays with a session or a tenant. */
function subjectFor(view: ViewName, subject: string): string {
  if (view === 'chat' || view === 'forget') return subject.includes(':') ? subject : ''
  if (view === 'memory') return subject
  return view === 'search' ? (subject.split(':')[0] ?? '') : ''
}

type NavigationProps = { route: Route; live: LiveUpdates; onSignOut: (() => void) | undefined }

function Navigation({ route, live, onSignOut }: NavigationProps) {
  const links = Object.entries(views).filter(([, { isHidden }]) => isHidden !== true)
  return (
    <nav class="nav" aria-label="Views">
      <p class="brand">Threadkeep</p>
      <ul>
        {links.map(([name, { title, icon }]) => (
          <li key={name}>
            <a
              class="nav-link"
              href={formatRoute(name as ViewName, subjectFor(name as ViewName, route.subject))}
              aria-current={
                name === route.view || (name === 'sessions' && route.view === 'conversation') ? 'page' : undefined
              }
            >
              <svg class="icon" viewBox="0 0 16 16" aria-hidden="true">
                <path d={icon} />
              </svg>
              {title}
            </a>
          </li>
        ))}
      </ul>
      <div class="nav-foot">
        <Connection live={live} />
        <ThemeButton />
        {onSignOut !== undefined && (
          <button type="button" class="button quiet" onClick={onSignOut}>
            Sign out
          </button>
        )}
        <a class="quiet-link" href="/docs">
          API reference
        </a>
      </div>
    </nav>
  )
}

const stateTexts: Readonly<Record<ConnectionState, string>> = {
  connecting: 'Connecting…',
  live: 'Live',
  offline: 'Server unreachable, trying again',
}

function Connection({ live }: { live: LiveUpdates }) {
  const [state, setState] = useState(live.state)
  useEffect(() => live.onState(setState), [live])
  return (
    <p class={`connection ${state}`} role="status">
      {stateTexts[state]}
    </p>
  )
}

const themeName = 'threadkeep-theme'

/** Switches between the light and the dark theme; the first theme is the system's. */
function ThemeButton() {
  const [theme, setTheme] = useState(() => localStorage.getItem(themeName) ?? '')
  useEffect(() => {
    if (theme === '') return
    document.documentElement.dataset.theme = theme
    localStorage.setItem(themeName, theme)
  }, [theme])
  const isDark = theme === '' ? matchMedia('(prefers-color-scheme: dark)').matches : theme === 'dark'
  return (
    <button type="button" class="button quiet" onClick={() => setTheme(isDark ? 'light' : 'dark')}>
      {isDark ? 'Light theme' : 'Dark theme'}
    </button>
  )
}
