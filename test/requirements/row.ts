/** Requirement; `in` lists the source files that implement it. */
export type Row = { readonly id: string; readonly source: string; readonly behaviour: string } & (
  | { readonly status: 'planned'; readonly in?: readonly string[] }
  | { readonly status: 'kept'; readonly in: readonly string[] }
)
