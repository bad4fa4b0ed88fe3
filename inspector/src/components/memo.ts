import { type Component, type FunctionComponent, h } from 'preact'

/** A component that is rendered again only when a property has changed. */
export function memo<P extends object>(render: FunctionComponent<P>): FunctionComponent<P> {
  const hasChanged = (before: P, after: P): boolean =>
    Object.keys({ ...before, ...after }).some((name) => before[name as keyof P] !== after[name as keyof P])
  return function Memo(this: Component<P>, props: P) {
    this.shouldComponentUpdate = (next) => hasChanged(this.props as P, next as P)
    return h(render, props)
  } as FunctionComponent<P>
}
