import type { ComponentType } from 'preact'
import type { Route, ViewName } from './router.ts'

type ViewDefinition = {
  readonly title: string
  /** Path of the icon in a square of 16. */
  readonly icon: string
  /** True for a view that is reached from another one. */
  readonly isHidden?: boolean
  /** True if the subject is a filter that the view itself changes. */
  readonly isFilteredBySubject?: boolean
  readonly load: () => Promise<ComponentType<{ route: Route }>>
}

/** All views, in the order of the navigation. Each is a module of its own that is loaded with its first use. */
export const views: Readonly<Record<ViewName, ViewDefinition>> = {
  sessions: {
    title: 'Sessions',
    icon: 'M2 4h12M2 8h12M2 12h8',
    load: async () => (await import('./views/sessions/sessions.tsx')).SessionsView,
  },
  conversation: {
    title: 'Conversation',
    icon: '',
    isHidden: true,
    load: async () => (await import('./views/conversation/conversation.tsx')).ConversationView,
  },
  chat: {
    title: 'Chat',
    icon: 'M2 3h12v8H7l-3 3v-3H2z',
    load: async () => (await import('./views/chat/chat.tsx')).ChatView,
  },
  memory: {
    title: 'Memory',
    icon: 'M8 2 14 5 8 8 2 5zM2 8l6 3 6-3M2 11l6 3 6-3',
    load: async () => (await import('./views/memory/memory.tsx')).MemoryView,
  },
  search: {
    title: 'Search',
    icon: 'M7 2a5 5 0 1 1 0 10A5 5 0 0 1 7 2zM10.6 10.6 14 14',
    isFilteredBySubject: true,
    load: async () => (await import('./views/search/search.tsx')).SearchView,
  },
  forget: {
    title: 'Forget',
    icon: 'M3 4h10M6 4V2h4v2M4 4l1 10h6l1-10',
    load: async () => (await import('./views/forget/forget.tsx')).ForgetView,
  },
  operations: {
    title: 'Operations',
    icon: 'M2 14h12M4 14V9M8 14V3M12 14V6',
    isFilteredBySubject: true,
    load: async () => (await import('./views/operations/operations.tsx')).OperationsView,
  },
}
