package runtime

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/lexer"

	"github.com/eyas-edge/eyas/camera"
)

// maxConfigBytes bounds a configuration file: a file beyond it is no configuration.
const maxConfigBytes = 1 << 20

// LoadConfig reads a configuration file and checks its form; Validate checks the rest. Errors carry the file,
// line and column.
func LoadConfig(path string) (Config, error) {
	f, err := os.Open(path)
	if err != nil {
		return Config{}, as(ErrConfig, fmt.Errorf("read configuration: %w", err))
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxConfigBytes+1))
	if err != nil {
		return Config{}, as(ErrConfig, fmt.Errorf("read configuration: %w", err))
	}
	if len(data) > maxConfigBytes {
		return Config{}, as(ErrConfig, fmt.Errorf("%s: more than %d bytes: not a configuration", path, maxConfigBytes))
	}
	c, err := ParseConfig(data)
	if err != nil {
		return Config{}, kind{fmt.Errorf("%s:%w", path, err), ErrConfig}
	}
	return c, nil
}

// ParseConfig reads the text of a configuration file and checks its form; Validate checks the rest.
// Unknown keys are errors. An error starts with line and column.
func ParseConfig(data []byte) (c Config, err error) {
	err = unmarshalStrict(data, &c)
	return c, as(ErrConfig, err)
}

func unmarshalStrict(data []byte, v any) (err error) {
	defer func() { // the parser is fed from outside: a fault of its own is a bad file, not our end
		if r := recover(); r != nil {
			err = fmt.Errorf("1:1: not understood as YAML: %v", r)
		}
	}()
	if len(bytes.TrimSpace(data)) == 0 {
		return errors.New("1:1: the file is empty")
	}
	err = yaml.UnmarshalWithOptions(data, v, yaml.Strict(), yaml.CustomUnmarshaler(unmarshalDuration))
	var at yaml.Error
	var wrong *yaml.TypeError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &wrong) && wrong.Token != nil:
		p := wrong.Token.Position
		return fmt.Errorf("%d:%d: %q is not %s", p.Line, p.Column, wrong.Token.Value, kindOf(wrong.DstType))
	case errors.As(err, &at) && at.GetToken() != nil:
		p := at.GetToken().Position
		return fmt.Errorf("%d:%d: %s", p.Line, p.Column, oneLine(at.GetMessage()))
	}
	line, column := find(data, err.Error())
	return fmt.Errorf("%d:%d: %s", line, column, oneLine(err.Error()))
}

// kindOf says in words what a value has to be.
func kindOf(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "a text"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice, reflect.Array:
		return "a list"
	case reflect.Struct, reflect.Map:
		return "a group of keys"
	case reflect.Int, reflect.Int64:
		return "a whole number"
	}
	return "a number"
}

// find returns where the value stands that a message quotes: the YAML package loses the place of a
// value that our own types refuse.
func find(data []byte, message string) (line, column int) {
	_, rest, _ := strings.Cut(message, `"`)
	value, _, _ := strings.Cut(rest, `"`)
	for _, t := range lexer.Tokenize(string(data)) {
		if t.Value == value && value != "" {
			return t.Position.Line, t.Position.Column
		}
	}
	return 1, 1
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

func unmarshalDuration(d *time.Duration, text []byte) (err error) {
	*d, err = ParseDuration(strings.Trim(strings.TrimSpace(string(text)), `"'`))
	return err
}

// ParseDuration reads a time such as "50ms", or "none" as NoSLO.
func ParseDuration(s string) (time.Duration, error) {
	if s == "none" {
		return NoSLO, nil
	}
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 {
		return 0, fmt.Errorf("time %q is not understood: use a number with a unit, such as 50ms or 1m30s", s)
	}
	return d, nil
}

// YAML writes the configuration as a file that ParseConfig reads. Passwords in URLs are left out.
func (c Config) YAML() ([]byte, error) {
	return yaml.MarshalWithOptions(c, yaml.CustomMarshaler(func(d time.Duration) ([]byte, error) {
		if d == NoSLO {
			return []byte("none"), nil
		}
		return []byte(d.String()), nil
	}))
}

// Sources is a list of sources, in the file a map from name to source in the order written.
type Sources []SourceConfig

// UnmarshalYAML reads the map and keeps its order.
func (s *Sources) UnmarshalYAML(unmarshal func(any) error) error {
	var order yaml.MapSlice
	var byName map[string]SourceConfig
	if err := unmarshal(&byName); err != nil {
		return err
	}
	if err := unmarshal(&order); err != nil {
		return err
	}
	*s = nil
	for _, item := range order {
		name := fmt.Sprint(item.Key)
		source, ok := byName[name]
		if !ok {
			return fmt.Errorf("source %s: the name is not plain text: quote it", name)
		}
		source.Name = name
		*s = append(*s, source)
	}
	return nil
}

// MarshalYAML writes the map in order.
func (s Sources) MarshalYAML() (any, error) {
	var order yaml.MapSlice
	for _, source := range s {
		source.URL = camera.Redact(source.URL)
		order = append(order, yaml.MapItem{Key: source.key(), Value: source})
	}
	return order, nil
}

// key is the source's key in a file: its name, or for want of one its URL without password.
func (s SourceConfig) key() string {
	if s.Name != "" {
		return s.Name
	}
	return camera.Redact(s.URL)
}
