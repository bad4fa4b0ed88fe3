import type { ComponentChildren } from 'preact'

type ViewProps = {
  title: string
  subtitle?: ComponentChildren
  actions?: ComponentChildren
  children: ComponentChildren
}

/** A view: its heading with actions, and its content. */
export const View = ({ title, subtitle, actions, children }: ViewProps) => (
  <>
    <header class="view-header">
      <div class="view-title">
        <h1>{title}</h1>
        {subtitle !== undefined && <div class="muted">{subtitle}</div>}
      </div>
      {actions !== undefined && <div class="row">{actions}</div>}
    </header>
    <div class="view-content">{children}</div>
  </>
)

/** A titled part of a view. */
export const Section = ({
  title,
  note,
  actions,
  children,
}: {
  title: string
  note?: ComponentChildren
  actions?: ComponentChildren
  children: ComponentChildren
}) => (
  <section class="section">
    <div class="section-header">
      <h2>{title}</h2>
      {note !== undefined && <span class="muted">{note}</span>}
      {actions !== undefined && <div class="row push">{actions}</div>}
    </div>
    {children}
  </section>
)

/** A figure with its name. */
export const Stat = ({ label, value, note }: { label: string; value: ComponentChildren; note?: string }) => (
  <div class="stat">
    <dt>{label}</dt>
    <dd>
      {value}
      {note !== undefined && <small>{note}</small>}
    </dd>
  </div>
)

export const Stats = ({ children }: { children: ComponentChildren }) => <dl class="stats">{children}</dl>

export const Badge = ({
  tone = 'plain',
  children,
}: {
  tone?: 'plain' | 'good' | 'warning' | 'danger'
  children: ComponentChildren
}) => <span class={`badge ${tone}`}>{children}</span>

type TabsProps<T extends string> = {
  label: string
  tabs: readonly (readonly [name: T, text: string])[]
  selected: T
  onSelect: (name: T) => void
}

/** Tabs; arrow keys move between them. */
export function Tabs<T extends string>({ label, tabs, selected, onSelect }: TabsProps<T>) {
  const move = (event: KeyboardEvent): void => {
    const step = event.key === 'ArrowRight' ? 1 : event.key === 'ArrowLeft' ? -1 : 0
    if (step === 0) return
    event.preventDefault()
    const index = tabs.findIndex(([name]) => name === selected)
    const next = tabs[(index + step + tabs.length) % tabs.length]
    if (next === undefined) return
    onSelect(next[0])
    const buttons = (event.currentTarget as HTMLElement).querySelectorAll<HTMLElement>('[role=tab]')
    buttons[(index + step + tabs.length) % tabs.length]?.focus()
  }
  return (
    <div class="tabs" role="tablist" aria-label={label} onKeyDown={move}>
      {tabs.map(([name, text]) => (
        <button
          key={name}
          type="button"
          role="tab"
          class="tab"
          aria-selected={name === selected}
          tabIndex={name === selected ? 0 : -1}
          onClick={() => onSelect(name)}
        >
          {text}
        </button>
      ))}
    </div>
  )
}
