package main

import (
	"fmt"
	"runtime"
	"sort"
	"time"

	"golang.org/x/sys/unix"
)

// As in benches/src/meter.rs.
const (
	sampleTime = 100 * time.Microsecond
	minSamples = 100
	warmUp     = 200
	counted    = 20
)

// measured is what one operation takes, in nanoseconds; the members of benches/src/results.rs.
type measured struct {
	Samples     int     `json:"samples"`
	WallP50     float64 `json:"wall_p50"`
	WallP99     float64 `json:"wall_p99"`
	CPUP10      float64 `json:"cpu_p10"`
	CPUP50      float64 `json:"cpu_p50"`
	Allocations float64 `json:"allocations"`
	Bytes       float64 `json:"bytes"`
}

type meter struct {
	time    time.Duration
	results map[string]measured
}

// processTime is the CPU time of all threads of this process, the garbage collector's included.
func processTime() time.Duration {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &now); err != nil {
		panic(err)
	}
	return time.Duration(now.Nano())
}

// measure runs operation on what prepare makes, which is not measured. One operation does count things.
func measure[T any](m *meter, name string, count int, prepare func() T, operation func(T) error) error {
	sample := func(times int) (wall, cpu time.Duration, allocations, bytes uint64, err error) {
		items := make([]T, times)
		for index := range items {
			items[index] = prepare()
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		started, used := time.Now(), processTime()
		for _, item := range items {
			if err := operation(item); err != nil {
				return 0, 0, 0, 0, fmt.Errorf("%s: %w", name, err)
			}
		}
		wall, cpu = time.Since(started), processTime()-used
		runtime.ReadMemStats(&after)
		return wall, cpu, after.Mallocs - before.Mallocs, after.TotalAlloc - before.TotalAlloc, nil
	}
	started := time.Now()
	for range warmUp {
		if _, _, _, _, err := sample(1); err != nil {
			return err
		}
		if time.Since(started) > m.time {
			break
		}
	}
	once, _, _, _, err := sample(1)
	if err != nil {
		return err
	}
	_, _, allocations, bytes, err := sample(counted)
	if err != nil {
		return err
	}
	times := int(min(max(sampleTime/max(once, 10), 1), 1000))
	var walls, cpus []float64
	started = time.Now()
	for time.Since(started) < m.time || (len(walls) < minSamples && time.Since(started) < 10*m.time) {
		wall, cpu, _, _, err := sample(times)
		if err != nil {
			return err
		}
		walls = append(walls, float64(wall)/float64(times*count))
		cpus = append(cpus, float64(cpu)/float64(times*count))
	}
	sort.Float64s(walls)
	sort.Float64s(cpus)
	result := measured{
		Samples: len(walls),
		WallP50: percentile(walls, 50), WallP99: percentile(walls, 99),
		CPUP10: percentile(cpus, 10), CPUP50: percentile(cpus, 50),
		Allocations: float64(allocations) / float64(counted*count),
		Bytes:       float64(bytes) / float64(counted*count),
	}
	m.results[name] = result
	fmt.Printf("%-42s %12s %12s %12s %12.1f %12.0f %8d\n", name, span(result.WallP50), span(result.WallP99),
		span(result.CPUP50), result.Allocations, result.Bytes, result.Samples)
	return nil
}

// percentile of sorted samples.
func percentile(samples []float64, percent int) float64 {
	if len(samples) == 0 {
		return 0
	}
	return samples[min(len(samples)*percent/100, len(samples)-1)]
}

// span is nanoseconds for people.
func span(nanos float64) string {
	switch {
	case nanos < 1e3:
		return fmt.Sprintf("%.0f ns", nanos)
	case nanos < 1e6:
		return fmt.Sprintf("%.2f µs", nanos/1e3)
	default:
		return fmt.Sprintf("%.2f ms", nanos/1e6)
	}
}
