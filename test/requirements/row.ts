/** One promise of the project; `in` names the source files that keep it. */
export type Row = { readonly id: string; readonly source: string; readonly behaviour: string } & (
  | { readonly status: 'planned'; readonly in?: readonly string[] }
  | { readonly status: 'kept'; readonly in: readonly string[] }
)
