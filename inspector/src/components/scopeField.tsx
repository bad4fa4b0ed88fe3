import { useApp } from '../appContext.ts'
import { SelectField, TextField } from './fields.tsx'

/** Returns the tenant that a view begins with: the one in the address, or the first of the key. */
export function useScope(subject: string): string {
  const { scopes } = useApp().access
  const [first = ''] = scopes.filter((name) => name !== '*')
  return (subject === '' ? first : subject).split(':')[0] ?? ''
}

type ScopeFieldProps = { scope: string; placeholder?: string; onChange: (scope: string) => void }

/** Chooses a tenant: from those of the key, or by name with a key of all tenants. */
export function ScopeField({ scope, placeholder = 'acme', onChange }: ScopeFieldProps) {
  const { scopes } = useApp().access
  if (scopes.includes('*'))
    return <TextField label="Tenant" value={scope} placeholder={placeholder} onInput={onChange} />
  return (
    <SelectField
      label="Tenant"
      value={scope}
      options={scopes.map((name) => [name, name] as const)}
      onChange={onChange}
    />
  )
}
