/** Splits the line at spaces instead of taking the words of bash, which splits keys at their colon. */
const bash = `# Completion of threadkeep for bash.
_threadkeep() {
  local line="\${COMP_LINE:0:COMP_POINT}" current="" prefix IFS=$' \\t\\n'
  local -a words
  read -ra words <<< "$line"
  [[ $line == *[[:space:]] ]] && words+=("")
  current="\${words[\${#words[@]}-1]}"
  IFS=$'\\n'
  COMPREPLY=($("$1" complete -- "\${words[@]:1}" 2> /dev/null | cut -f1))
  if [[ $current == *:* && $COMP_WORDBREAKS == *:* ]]; then
    prefix="\${current%"\${current##*:}"}"
    COMPREPLY=("\${COMPREPLY[@]#"$prefix"}")
  fi
}
complete -o default -F _threadkeep threadkeep
`

const zsh = `#compdef threadkeep
# Completion of threadkeep for zsh.
_threadkeep() {
  local line value meaning
  local -a candidates
  for line in "\${(@f)$("\${words[1]}" complete -- "\${(@)words[2,CURRENT]}" 2> /dev/null)}"; do
    [[ -z $line ]] && continue
    value="\${line%%$'\\t'*}"
    meaning="\${line#*$'\\t'}"
    [[ $meaning == $line ]] && candidates+=("\${value//:/\\\\:}") || candidates+=("\${value//:/\\\\:}:$meaning")
  done
  if (( \${#candidates} )); then
    _describe threadkeep candidates
  else
    _files
  fi
}
if [[ \${funcstack[1]} == _threadkeep ]]; then
  _threadkeep "$@"
else
  compdef _threadkeep threadkeep
fi
`

const fish = `# Completion of threadkeep for fish.
function __threadkeep_complete
    set -l words (commandline -opc) (commandline -ct)
    set -l found ($words[1] complete -- $words[2..-1] 2> /dev/null)
    if test (count $found) -gt 0
        printf '%s\\n' $found
    else
        __fish_complete_path (commandline -ct)
    end
end
complete -c threadkeep -f -a '(__threadkeep_complete)'
`

/** Completion scripts by shell. They ask the hidden command `complete`. */
export const completionScripts: Readonly<Record<string, string>> = { bash, zsh, fish }
