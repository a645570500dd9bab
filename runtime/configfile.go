package runtime

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/eyas-edge/eyas/camera"
	"github.com/eyas-edge/eyas/internal/yamlfile"
)

// LoadConfig reads a configuration file and checks its form; Validate checks the rest. Errors carry the file,
// line and column.
func LoadConfig(path string) (Config, error) {
	f, err := os.Open(path)
	if err != nil {
		return Config{}, as(ErrConfig, fmt.Errorf("read configuration: %w", err))
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, yamlfile.MaxBytes+1))
	if err != nil {
		return Config{}, as(ErrConfig, fmt.Errorf("read configuration: %w", err))
	}
	if len(data) > yamlfile.MaxBytes {
		return Config{}, as(ErrConfig, fmt.Errorf("%s: more than %d bytes: not a configuration", path, yamlfile.MaxBytes))
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

func unmarshalStrict(data []byte, v any) error {
	doc, err := yamlfile.Parse(data)
	if err != nil {
		return err
	}
	if doc.Body == nil {
		return yamlfile.At(nil, "the file is empty")
	}
	return doc.Decode(v, yaml.CustomUnmarshaler(unmarshalDuration))
}

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
