import type { ComponentChildren } from 'preact'
import { useId } from 'preact/hooks'

type FieldProps = { label: string; hint?: string; children: (id: string) => ComponentChildren }

/** A labelled control. */
function Field({ label, hint, children }: FieldProps) {
  const id = useId()
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {children(id)}
      {hint !== undefined && <p class="hint">{hint}</p>}
    </div>
  )
}

type TextFieldProps = {
  label: string
  name?: string
  /** Without `onInput`, only the first value: a live update of the view must not reset what somebody has written. */
  value?: string
  placeholder?: string
  hint?: string
  isRequired?: boolean
  type?: 'text' | 'search' | 'password' | 'date' | 'number'
  onInput?: (value: string) => void
}

export const TextField = ({
  label,
  name,
  value,
  placeholder,
  hint,
  isRequired = false,
  type = 'text',
  onInput,
}: TextFieldProps) => (
  <Field label={label} {...(hint !== undefined && { hint })}>
    {(id) => (
      <input
        id={id}
        class="input"
        type={type as 'text'}
        name={name}
        {...(onInput === undefined ? { defaultValue: value } : { value })}
        placeholder={placeholder}
        required={isRequired}
        autocomplete="off"
        spellcheck={false}
        onInput={(event) => onInput?.(event.currentTarget.value)}
      />
    )}
  </Field>
)

type SelectFieldProps = {
  label: string
  name?: string
  value: string
  options: readonly (readonly [value: string, label: string])[]
  onChange?: (value: string) => void
}

export const SelectField = ({ label, name, value, options, onChange }: SelectFieldProps) => (
  <Field label={label}>
    {(id) => (
      <select
        id={id}
        class="input"
        name={name}
        {...(onChange !== undefined && { value })}
        onChange={(event) => onChange?.(event.currentTarget.value)}
      >
        {options.map(([option, text]) => (
          <option key={option} value={option} selected={option === value}>
            {text}
          </option>
        ))}
      </select>
    )}
  </Field>
)
