import { checkOptions } from '../domain/checkOptions.ts'
import { anyText, listOf, MemoryError, nonEmptyText } from '../domain/error.ts'
import type { Scope } from '../domain/key.ts'

/**
 * Target of `forget`: a session, one or several of its messages, a scope with all its sessions, or a text in a scope.
 * With `person`, the entry belongs to that person of the scope.
 */
export type ForgetTarget =
  | { readonly key: string }
  | { readonly key: string; readonly messageId: string; readonly person?: string }
  | { readonly key: string; readonly messageIds: readonly string[] }
  | { readonly scope: Scope }
  | { readonly scope: Scope; readonly text: string }

/** All fields of a target. */
type TargetFields = {
  readonly key: string
  readonly messageId: string
  readonly messageIds: readonly string[]
  readonly person: string
  readonly scope: Scope
  readonly text: string
}

/** Combinations of fields that name a target. */
const targetForms = ['key', 'key, messageId', 'key, messageId, person', 'key, messageIds', 'scope', 'scope, text']

/**
 * Throws `bad-option` unless a target has exactly the fields of one form, each with a value: a selector that is
 * misspelt or undefined must not widen the target to the whole session.
 */
export function checkTarget(target: unknown): asserts target is ForgetTarget {
  checkOptions<TargetFields>('forget', target, {
    key: anyText,
    messageId: nonEmptyText,
    messageIds: listOf(nonEmptyText),
    person: anyText,
    scope: anyText,
    text: nonEmptyText,
  })
  const fields = Object.entries(target as object)
  const [missing] = fields.filter(([, value]) => value === undefined)
  const isForm = targetForms.includes(
    fields
      .map(([name]) => name)
      .sort()
      .join(', '),
  )
  if (missing === undefined && isForm) return
  throw new MemoryError('bad-option', `Invalid target. Use one of: { ${targetForms.join(' }, { ')} }.`, {
    param: missing?.[0] ?? 'target',
  })
}
