import type { ComponentChildren } from 'preact'
import type { Resource } from '../useResource.ts'

/** Shown in place of data that does not exist yet, with the next step. */
export const EmptyState = ({ title, children }: { title: string; children?: ComponentChildren }) => (
  <div class="state">
    <p class="state-title">{title}</p>
    {children !== undefined && <div class="muted">{children}</div>}
  </div>
)

export const ErrorState = ({ message, onRetry }: { message: string; onRetry?: () => void }) => (
  <div class="state" role="alert">
    <p class="state-title danger">{message}</p>
    {onRetry !== undefined && (
      <button type="button" class="button" onClick={onRetry}>
        Try again
      </button>
    )}
  </div>
)

/** Grey lines in the place of data that is on its way. */
export const LoadingState = ({ rows = 6 }: { rows?: number }) => (
  <div class="loading" role="status">
    <span class="visually-hidden">Loading</span>
    {Array.from({ length: rows }, (_, row) => (
      <div key={row} class="loading-row" />
    ))}
  </div>
)

/** Renders data, or its loading or error state. Old data stays visible under a note while the server is away. */
export function ResourceView<T>({
  resource: { data, error, reload },
  rows,
  children,
}: {
  resource: Resource<T>
  rows?: number
  children: (data: T) => ComponentChildren
}) {
  if (data === undefined)
    return error === undefined ? (
      <LoadingState {...(rows !== undefined && { rows })} />
    ) : (
      <ErrorState message={error.message} onRetry={reload} />
    )
  return (
    <>
      {error !== undefined && (
        <p class="note" role="status">
          {error.message} The data below may be out of date.
        </p>
      )}
      {children(data)}
    </>
  )
}
