import { createContext } from 'preact'
import { useContext } from 'preact/hooks'
import type { LiveUpdates } from './api/events.ts'
import type { Access } from './api/types.ts'

/** Shared by all views. */
export type AppContext = { readonly access: Access; readonly live: LiveUpdates }

const context = createContext<AppContext | undefined>(undefined)
export const AppProvider = context.Provider

export function useApp(): AppContext {
  const app = useContext(context)
  if (app === undefined) throw new Error('The view is outside of the application.')
  return app
}
